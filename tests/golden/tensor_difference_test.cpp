// What the golden tests say when they fail.
#include "tests/golden/tensor_difference.hpp"

#include <gtest/gtest.h>

#include "lib/layouts/slot_outputs.hpp"
#include "lib/steps/recodings.hpp"
#include "tests/golden/drawn_inputs.hpp"

namespace mxfp4::test {
namespace {

LoadedLayer small_layer() {
  LoadedSpec spec;
  spec.dims = {2, 64, 64};
  spec.bias = DType::kBF16;
  return drawn_layer(spec, {.seed = 3});
}

// w13_weight, [2, 128, 32] bytes, by one step.
Output weights_by(const LoadedLayer& layer, Step step) {
  Program program(128 * 32);
  program.then(std::move(step));
  const TensorSpec spec = {DType::kU8, {2, program.out_bytes()}};
  return slot_output(layer.spec, Slot::kW13Weight, spec, std::move(program));
}

TEST(TensorDifference, NamesTheFirstByte) {
  const std::vector<std::byte> expected = {std::byte{1}, std::byte{2}, std::byte{0x3F}};
  std::vector<std::byte> found = expected;
  EXPECT_FALSE(find_difference(found, expected).has_value());
  found[2] = std::byte{4};
  const auto difference = find_difference(found, expected);
  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference_text({DType::kU8, {3, 1}}, *difference),
            "element [2, 0] (byte 2): expected 0x3f, found 0x04");
  EXPECT_EQ(element_text({DType::kF32, {2, 3}}, 21), "[1, 2], byte 1 of 4");
}

TEST(TensorDifference, FindsWhereABitComesFrom) {
  const LoadedLayer layer = small_layer();
  const Output turned = weights_by(layer, Permute{Unit::kByte, {128, 32}, {1, 0}});
  // Byte (c, n) = (5, 70) of the second expert.
  EXPECT_EQ(source_text(turned, layer, 4096 + 5 * 128 + 70, 6), "w13_weight [1, 70, 5], bit 6");
  const Output codes = weights_by(layer, Permute{Unit::kNibble, {128, 64}, {1, 0}});
  // Codes (k, n) = (7, 10) and (7, 11) of the first expert make byte 7 * 64 + 5.
  EXPECT_EQ(source_text(codes, layer, 7 * 64 + 5, 1), "w13_weight [0, 10, 3], bit 5");
  EXPECT_EQ(source_text(codes, layer, 7 * 64 + 5, 4), "w13_weight [0, 11, 3], bit 4");
}

TEST(TensorDifference, KnowsWhatWasNotLoaded) {
  const LoadedLayer layer = small_layer();
  const Output padded = weights_by(layer, PadMatrix{128, 32, 129, 32, std::byte{0}});
  EXPECT_EQ(source_text(padded, layer, 128 * 32, 0), "no bit of w13_weight: padding");
  const Output bias = f32_bias_output(layer.spec, Slot::kW13Bias);
  EXPECT_EQ(source_text(bias, layer, 4 * (128 + 9) + 3, 7), "w13_bias [1, 9], byte 1 of 2, bit 7");
}

}  // namespace
}  // namespace mxfp4::test
