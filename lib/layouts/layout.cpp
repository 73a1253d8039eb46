#include "lib/layouts/layout.hpp"

namespace mxfp4 {

std::string_view id_of(const Layout& layout) { return layout.id; }

}  // namespace mxfp4
