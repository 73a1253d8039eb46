// The CPU layout against its index formulas, position by position.
#include <gtest/gtest.h>

#include "lib/layouts/other_layouts.hpp"
#include "tests/unit/layer_bytes.hpp"

namespace mxfp4 {
namespace {

using test::at;
using test::Bytes;
using test::code_at;
using test::LayerBytes;
using test::output_of;
using test::u16_at;

TEST(CpuLayout, CodesScalesAndBiasesByFormula) {
  const LayerBytes layer({2, 96, 160}, DType::kBF16);
  const auto outputs = make_outputs(kCpuVnni32Layout, layer.input);
  ASSERT_EQ(outputs.size(), 6U);
  const Output& weight = output_of(outputs, "w13_weight");
  const Output& scale = output_of(outputs, "w13_weight_scale");
  EXPECT_EQ(weight.spec, layer.input.loaded.tensor(Slot::kW13Weight));
  EXPECT_EQ(scale.spec, layer.input.loaded.tensor(Slot::kW13WeightScale));
  const Bytes codes = layer.pack(weight);
  const Bytes scales = layer.pack(scale);
  constexpr int64_t kN = 320, kC = 48, kG = 3;
  for (int64_t e = 0; e < 2; ++e) {
    for (int64_t n = 0; n < kN; ++n) {
      for (int64_t j = 0; j < 2 * kC; ++j) {
        const int64_t byte = e * kN * kC + n / 32 * 32 * kC + 32 * (j / 2) + 2 * (n % 16) + j % 2;
        const int64_t high = n % 32 >= 16 ? 1 : 0;
        ASSERT_EQ(code_at(codes, 2 * byte + high),
                  code_at(layer.slots.at(Slot::kW13Weight), (e * kN + n) * 2 * kC + j))
            << e << " " << n << " " << j;
      }
      for (int64_t g = 0; g < kG; ++g) {
        ASSERT_EQ(at(scales, e * kN * kG + n / 32 * 32 * kG + 32 * g + n % 32),
                  at(layer.slots.at(Slot::kW13WeightScale), (e * kN + n) * kG + g));
      }
    }
  }
  const Output& bias = output_of(outputs, "w2_bias");
  EXPECT_EQ(bias.spec, (TensorSpec{DType::kF32, {2, 96}}));
  const Bytes biases = layer.pack(bias);
  for (int64_t n = 0; n < 2 * 96; ++n) {
    ASSERT_EQ(u16_at(biases, 2 * n), 0U);
    ASSERT_EQ(u16_at(biases, 2 * n + 1), u16_at(layer.slots.at(Slot::kW2Bias), n));
  }
  expect_restores_every_slot(layer, outputs);
}

TEST(CpuLayout, WorkedExamples) {
  LayerBytes layer({1, 128, 32}, std::nullopt);
  for (auto& [slot, bytes] : layer.slots) std::ranges::fill(bytes, std::byte{0});
  layer.slots[Slot::kW2Weight][17 * 16 + 2] = std::byte{0xC0};      // row 17, element 5
  layer.slots[Slot::kW13WeightScale][33 * 4 + 2] = std::byte{200};  // row 33, group 2
  const auto outputs = make_outputs(kCpuVnni32Layout, layer.input);
  ASSERT_EQ(outputs.size(), 4U);
  EXPECT_EQ(at(layer.pack(output_of(outputs, "w2_weight")), 67), 0xC0U);
  EXPECT_EQ(at(layer.pack(output_of(outputs, "w13_weight_scale")), 193), 200U);
}

}  // namespace
}  // namespace mxfp4
