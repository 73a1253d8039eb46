// Every layout value, each defined in the file of its name.
#pragma once

#include "lib/layouts/layout.hpp"

namespace mxfp4 {

extern const Layout kIdentityLayout;
extern const Layout kDeepgemmF32Layout;
extern const Layout kFlashinferTrtllmLayout;
extern const Layout kFlashinferCutlassMxfp8Layout;
extern const Layout kFlashinferCutlassSm90Layout;
extern const Layout kMarlinW4A16Layout;
extern const Layout kMarlinW4A8Fp8Layout;
extern const Layout kHummingMmaLayout;
extern const Layout kHummingWgmmaLayout;
extern const Layout kHummingW4A8Layout;
extern const Layout kCpuVnni32Layout;

}  // namespace mxfp4
