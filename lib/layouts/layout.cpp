#include "lib/layouts/layout.hpp"

namespace mxfp4 {

std::string_view id_of(const Layout& layout) { return layout.id; }

std::string_view kernel_library_of(const Layout& layout) { return layout.kernel_library; }

std::vector<Output> make_outputs(const Layout& layout, const LayoutInput& input) {
  return layout.outputs(input);
}

bool checks_data(const Layout& layout) { return layout.check_data != nullptr; }

bool refuses_scales(const Layout& layout) { return layout.refuses_scales; }

std::string check_granule(const Layout& layout, const LayoutInput& input, Slot slot,
                          ConstBytes granule) {
  return layout.check_data(input, slot, granule);
}

}  // namespace mxfp4
