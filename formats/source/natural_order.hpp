// Orders file and tensor names, runs of digits by their value.
#pragma once

#include <string_view>

namespace mxfp4 {

// "x-2" before "x-10". A strict total order.
[[nodiscard]] bool natural_less(std::string_view a, std::string_view b);

}  // namespace mxfp4
