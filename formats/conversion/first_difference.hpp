// Where two pieces of memory differ first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

// The position of the first byte that differs, or that only the longer one has; empty if they are
// equal.
[[nodiscard]] inline std::optional<size_t> first_difference(ConstBytes a, ConstBytes b) {
  // Equal memory is the usual case, and memcmp() is many times as fast.
  if (a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0)) {
    return std::nullopt;
  }
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace mxfp4
