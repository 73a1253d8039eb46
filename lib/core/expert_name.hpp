// The words by which a tensor's name says that it belongs to a routed expert.
#pragma once

#include <string_view>

namespace mxfp4 {

// Whether a tensor's name is an expert's, in any model and form, quantized or not. False for shared
// experts.
[[nodiscard]] bool names_expert(std::string_view name);

}  // namespace mxfp4
