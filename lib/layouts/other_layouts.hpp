// The layouts of the backends that have few, by name; each is defined in a file of lib/layouts.
#pragma once

namespace mxfp4 {

struct Layout;

extern const Layout kIdentityLayout;
extern const Layout kIdentityInputMaximumLayout;
extern const Layout kDeepgemmF32Layout;
extern const Layout kDeepgemmPackedLayout;
extern const Layout kDeepgemmMegaMoeLayout;
extern const Layout kCutlassMxfp4Layout;
extern const Layout kMarlinW4A16Layout;
extern const Layout kMarlinW4A8Fp8Layout;
extern const Layout kCpuVnni32Layout;

}  // namespace mxfp4
