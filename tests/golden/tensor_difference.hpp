// What a failed comparison of tensors says: the element, what was expected and found, and which
// loaded element it comes from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/golden/loaded_layer.hpp"

namespace mxfp4::test {

struct ByteDifference {
  int64_t byte = 0;  // of the tensor
  std::byte expected{0};
  std::byte found{0};
};

// The first byte that differs. The two have as many bytes.
[[nodiscard]] std::optional<ByteDifference> find_difference(ConstBytes found, ConstBytes expected);

// The element that a byte belongs to: "[1, 37, 12]", and the byte of it where it has several.
[[nodiscard]] std::string element_text(const TensorSpec& spec, int64_t byte);

// "element [1, 37, 12] (byte 4711): expected 0x3f, found 0x3e"
[[nodiscard]] std::string difference_text(const TensorSpec& spec, const ByteDifference& difference);

// Which loaded bit makes bit `bit` of byte `byte` of an output: "w13_weight [1, 20, 45], bit 4".
// Runs the output forward with inverted loaded bits, and so needs to know nothing of the layout.
[[nodiscard]] std::string source_text(const Output& output, const LoadedLayer& layer, int64_t byte,
                                      int bit);

}  // namespace mxfp4::test
