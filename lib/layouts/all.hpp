// Every layout value, each defined in the file of its name.
#pragma once

#include "lib/layouts/layout.hpp"

namespace mxfp4 {

extern const Layout kIdentityLayout;

}  // namespace mxfp4
