#include "lib/layouts/layout.hpp"

namespace mxfp4 {
namespace {

// The input with the parameters that the layout reads, and the usual values of the others.
LayoutInput as_read(const Layout& layout, const LayoutInput& input) {
  LayoutInput out{input.loaded};
  if (layout.reads.family) out.parameters.family = input.parameters.family;
  if (layout.reads.params_dtype) out.parameters.params_dtype = input.parameters.params_dtype;
  if (layout.reads.humming_input_dtype) {
    out.parameters.humming_input_dtype = input.parameters.humming_input_dtype;
  }
  return out;
}

}  // namespace

std::string_view id_of(const Layout& layout) { return layout.id; }

std::string_view kernel_library_of(const Layout& layout) { return layout.kernel_library; }

std::vector<Output> make_outputs(const Layout& layout, const LayoutInput& input) {
  return layout.outputs(as_read(layout, input));
}

std::vector<std::pair<std::string_view, std::string>> parameters_of(
    const Layout& layout, const LayoutParameters& parameters) {
  std::vector<std::pair<std::string_view, std::string>> read;
  if (layout.reads.family) read.emplace_back("family", family_name(parameters.family));
  if (layout.reads.params_dtype) read.emplace_back("params_dtype", parameters.params_dtype);
  if (layout.reads.humming_input_dtype) {
    read.emplace_back("humming_input_dtype", parameters.humming_input_dtype);
  }
  return read;
}

bool checks_data(const Layout& layout) { return layout.check_data != nullptr; }

bool refuses_scales(const Layout& layout) { return layout.refuses_scales; }

std::string check_granule(const Layout& layout, const LayoutInput& input, Slot slot,
                          ConstBytes granule) {
  return layout.check_data(as_read(layout, input), slot, granule);
}

}  // namespace mxfp4
