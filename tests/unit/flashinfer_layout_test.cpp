// What the FlashInfer and DeepGEMM goldens do not show: preconditions, NaN biases, F32 biases,
// storage facts, and the formulas of the file headers checked element by element.
#include <gtest/gtest.h>

#include <cstring>

#include "lib/core/error.hpp"
#include "lib/layouts/block_scale_swizzle.hpp"
#include "lib/layouts/flashinfer_common.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "tests/golden/drawn_inputs.hpp"

namespace mxfp4::test {
namespace {

LayoutInput input_of(LayerDims dims, std::optional<DType> bias, Family family = Family::kGptOss) {
  LayoutInput input;
  input.loaded = {dims, bias, false};
  input.parameters.family = family;
  return input;
}

ErrorKind kind_of_refusal(const Layout& layout, const LayoutInput& input) {
  try {
    (void)make_outputs(layout, input);
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << id_of(layout) << " did not refuse";
  return ErrorKind::kInternal;
}

int nibble_at(const std::vector<std::byte>& bytes, int64_t at) {
  return std::to_integer<int>(bytes[static_cast<size_t>(at / 2)]) >> at % 2 * 4 & 15;
}

template <class Word>
std::vector<Word> words_of(const Tensor& tensor) {
  std::vector<Word> words(tensor.bytes.size() / sizeof(Word));
  std::memcpy(words.data(), tensor.bytes.data(), tensor.bytes.size());
  return words;
}

template <class Word>
void set_words(Tensor& tensor, const std::vector<Word>& words) {
  std::memcpy(tensor.bytes.data(), words.data(), words.size() * sizeof(Word));
}

TEST(FlashinferLayout, RefusesUnalignedSizes) {
  for (const Layout* layout :
       {&kFlashinferTrtllmLayout, &kFlashinferCutlassSm90Layout,
        &kFlashinferCutlassSm90FoldedLayout, &kFlashinferCutlassMxfp8Layout}) {
    for (const LayerDims dims : {LayerDims{1, 160, 128}, LayerDims{1, 128, 192}}) {
      EXPECT_EQ(kind_of_refusal(*layout, input_of(dims, DType::kBF16)), ErrorKind::kUnsupported);
    }
  }
}

TEST(FlashinferLayout, GptOssNeedsBiasesAndGenericTrtllmDoesNot) {
  const LayerDims dims{1, 128, 128};
  for (const Layout* layout :
       {&kFlashinferTrtllmLayout, &kFlashinferCutlassSm90Layout,
        &kFlashinferCutlassSm90FoldedLayout, &kFlashinferCutlassMxfp8Layout}) {
    EXPECT_EQ(kind_of_refusal(*layout, input_of(dims, std::nullopt)), ErrorKind::kUnsupported);
  }
  EXPECT_EQ(
      make_outputs(kFlashinferTrtllmLayout, input_of(dims, std::nullopt, Family::kGeneric)).size(),
      4U);
}

TEST(FlashinferLayout, EmptyRankHasEmptyOutputs) {
  for (const Layout* layout :
       {&kFlashinferTrtllmLayout, &kFlashinferCutlassSm90Layout,
        &kFlashinferCutlassSm90FoldedLayout, &kFlashinferCutlassMxfp8Layout}) {
    for (const Output& output : make_outputs(*layout, input_of({0, 128, 128}, DType::kBF16))) {
      EXPECT_EQ(output.spec.bytes(), 0) << output.name;
      EXPECT_EQ(granule_count(output, 0), 0);
    }
  }
}

TEST(FlashinferLayout, RowTablesStartAsDocumented) {
  const auto shuffled = trtllm_shuffled_rows(64);
  EXPECT_EQ(std::vector<int64_t>(shuffled.begin(), shuffled.begin() + 10),
            (std::vector<int64_t>{0, 4, 8, 12, 16, 20, 24, 28, 1, 5}));
  EXPECT_EQ(shuffled[32], 32);
  EXPECT_EQ(up_gate_pairs(Family::kGptOss, 4), (std::vector<int64_t>{1, 0, 3, 2}));
  EXPECT_EQ(up_gate_pairs(Family::kGeneric, 4), (std::vector<int64_t>{2, 0, 3, 1}));
  EXPECT_EQ(up_half_gate_half(6), (std::vector<int64_t>{1, 3, 5, 0, 2, 4}));
}

TEST(FlashinferLayout, TrtllmFamiliesAgreeOnTheSameGateAndUpRows) {
  const LayoutInput gpt_oss = input_of({2, 128, 128}, DType::kBF16);
  const LayoutInput generic = input_of({2, 128, 128}, DType::kBF16, Family::kGeneric);
  const LoadedLayer interleaved = drawn_layer(gpt_oss.loaded, {.seed = 3});
  LoadedLayer halves = interleaved;
  for (Slot slot : {Slot::kW13Weight, Slot::kW13WeightScale, Slot::kW13Bias}) {
    const auto [rows, row_bytes] = gpt_oss.loaded.expert(slot);
    for (int64_t at = 0; at < 2 * rows; ++at) {
      const int64_t row = at % rows;
      const int64_t from = at - row + (row < rows / 2 ? 2 * row : 2 * (row - rows / 2) + 1);
      std::memcpy(halves.slots[slot].bytes.data() + at * row_bytes,
                  interleaved.slots.at(slot).bytes.data() + from * row_bytes,
                  static_cast<size_t>(row_bytes));
    }
  }
  EXPECT_EQ(run_layout(kFlashinferTrtllmLayout, gpt_oss, interleaved, std::byte{1}),
            run_layout(kFlashinferTrtllmLayout, generic, halves, std::byte{2}));
}

TEST(FlashinferLayout, TrtllmScalesNameTheirTorchType) {
  for (const Output& output :
       make_outputs(kFlashinferTrtllmLayout, input_of({1, 128, 128}, DType::kBF16))) {
    const bool scale = output.spec.dtype == DType::kF8E4M3;
    EXPECT_EQ(scale, output.name.ends_with("weight_scale"));
    EXPECT_EQ(output.storage.torch_dtype, scale ? "float8_e4m3fn" : "");
  }
}

TEST(FlashinferLayout, Sm90WeightsFollowTheNibbleFormula) {
  const LayoutInput input = input_of({1, 128, 256}, DType::kBF16);
  const LoadedLayer layer = drawn_layer(input.loaded, {.seed = 4});
  const Tensors written = run_layout(kFlashinferCutlassSm90Layout, input, layer, std::byte{0});
  const std::vector<std::byte>& in = layer.slots.at(Slot::kW2Weight).bytes;
  const std::vector<std::byte>& out = written.at("w2_weight").bytes;
  const int64_t columns = 256;
  for (int64_t r = 0; r < 128; ++r) {
    for (int64_t k = 0; k < columns; ++k) {
      const auto bit = [](int64_t x, int i) { return x >> i & 1; };
      const int64_t d = (r & ~int64_t{8}) | bit(k, 4) << 3;
      const int64_t q = (k - k % 64) + 32 * bit(k, 5) + 16 * bit(k, 2) + 8 * bit(k, 1) +
                        4 * bit(k, 3) + 2 * bit(k, 0) + bit(r, 3);
      ASSERT_EQ(nibble_at(out, d * columns + q), nibble_at(in, r * columns + k))
          << "row " << r << ", element " << k;
    }
  }
}

TEST(FlashinferLayout, FoldedWeightsFollowTheWordFormula) {
  const LayoutInput input = input_of({1, 128, 256}, DType::kBF16);
  const LoadedLayer layer = drawn_layer(input.loaded, {.seed = 4});
  const Tensors written =
      run_layout(kFlashinferCutlassSm90FoldedLayout, input, layer, std::byte{0});
  const std::vector<std::byte>& in = layer.slots.at(Slot::kW2Weight).bytes;
  const auto words = words_of<uint32_t>(written.at("w2_weight"));
  // Bits of the codes a, b, c, d (slots 0 to 3) in half a word, from bit 15 down.
  constexpr std::pair<int, int> kBits[] = {{0, 3}, {3, 3}, {3, 0}, {1, 3}, {3, 2}, {3, 1},
                                           {2, 3}, {0, 2}, {0, 1}, {0, 0}, {1, 2}, {1, 1},
                                           {1, 0}, {2, 2}, {2, 1}, {2, 0}};
  for (int64_t d = 0; d < 128; ++d) {
    for (int64_t q = 0; q < 32; ++q) {
      // Slot s of word q of row d comes from this row and byte.
      const auto code = [&](int64_t s, int64_t nibble) {
        const int64_t r = (d & ~int64_t{8}) | (s & 1) << 3;
        const int64_t c = q / 8 * 32 + (q >> 2 & 1) * 16 + (d >> 3 & 1) * 8 + (s >> 1) * 4 + q % 4;
        return nibble_at(in, 2 * (r * 128 + c) + nibble);
      };
      uint32_t word = 0;
      for (int i = 0; i < 32; ++i) {
        const auto [slot, bit] = kBits[15 - i % 16];
        word |= static_cast<uint32_t>(code(slot, i / 16) >> bit & 1) << i;
      }
      ASSERT_EQ(words[static_cast<size_t>(d * 32 + q)], word) << "row " << d << ", word " << q;
    }
  }
}

TEST(FlashinferLayout, FoldedScalesFollowTheirFormula) {
  const LayoutInput input = input_of({2, 256, 128}, DType::kBF16);
  const LoadedLayer layer = drawn_layer(input.loaded, {.seed = 5});
  const Tensors written =
      run_layout(kFlashinferCutlassSm90FoldedLayout, input, layer, std::byte{0});
  const Tensor& out = written.at("w2_weight_scale");
  ASSERT_EQ(out.spec.shape, (Shape{2, 4, 1, 16, 16}));
  EXPECT_EQ(written.at("w13_weight_scale").spec.shape, (Shape{2, 4, 2, 16, 16}));
  const std::vector<std::byte>& in = layer.slots.at(Slot::kW2WeightScale).bytes;
  for (int64_t at = 0; at < 2 * 256 * 4; ++at) {
    const int64_t r = at / 4 % 256;
    const int64_t c = at % 4;
    const int64_t to = at / 1024 * 1024 + r / 64 * 256 + r % 16 * 16 + 4 * (r % 64 / 16) + c;
    ASSERT_EQ(out.bytes[static_cast<size_t>(to)], in[static_cast<size_t>(at)]) << "row " << r;
  }
}

TEST(FlashinferLayout, SwizzleFollowsItsFormula) {
  const int64_t rows = 200;
  const int64_t columns = 6;
  Program program(rows * columns);
  swizzle_128x4(program, rows, columns);
  ASSERT_EQ(program.out_bytes(), 256 * 8);
  const std::vector<std::byte> in = drawn_bytes(5, rows * columns);
  std::vector<std::byte> out(static_cast<size_t>(program.out_bytes()), std::byte{0xEE});
  std::vector<std::byte> scratch(static_cast<size_t>(program.scratch_bytes()));
  program.forward(in, out, scratch);
  for (int64_t r = 0; r < 256; ++r) {
    for (int64_t c = 0; c < 8; ++c) {
      const int64_t at = (r / 128 * 2 + c / 4) * 512 + r % 32 * 16 + r % 128 / 32 * 4 + c % 4;
      const std::byte want =
          r < rows && c < columns ? in[static_cast<size_t>(r * columns + c)] : std::byte{0};
      ASSERT_EQ(out[static_cast<size_t>(at)], want) << r << ", " << c;
    }
  }
}

// As seen on the GPU: every NaN of w13_bias becomes 7FFF; infinities, zeros and subnormals and all
// of w2_bias stay.
TEST(FlashinferLayout, CutlassCanonicalisesOnlyW13BiasNans) {
  for (const Layout* layout : {&kFlashinferCutlassSm90Layout, &kFlashinferCutlassSm90FoldedLayout,
                               &kFlashinferCutlassMxfp8Layout}) {
    const LayoutInput input = input_of({1, 128, 128}, DType::kBF16);
    LoadedLayer layer = drawn_layer(input.loaded, {.seed = 6});
    const std::vector<uint16_t> special = {0x7FC0, 0x3F80, 0x7FC1, 0x7F81, 0xFF81, 0xFFC0,
                                           0xFFFF, 0x7F80, 0xFF80, 0x8000, 0x0001, 0x807F};
    set_words(layer.slots[Slot::kW13Bias], special);
    set_words(layer.slots[Slot::kW2Bias], special);
    const Tensors written = run_layout(*layout, input, layer, std::byte{0});
    const auto w13 = words_of<uint16_t>(written.at("w13_bias"));
    const std::vector<uint16_t> up = {0x3F80, 0x7FFF, 0x7FFF, 0x7F80, 0x8000, 0x807F};
    const std::vector<uint16_t> gate = {0x7FFF, 0x7FFF, 0x7FFF, 0x7FFF, 0xFF80, 0x0001};
    EXPECT_EQ(std::vector<uint16_t>(w13.begin(), w13.begin() + 6), up);
    EXPECT_EQ(std::vector<uint16_t>(w13.begin() + 128, w13.begin() + 134), gate);
    EXPECT_EQ(written.at("w2_bias").bytes, layer.slots.at(Slot::kW2Bias).bytes);
    for (const Output& output : make_outputs(*layout, input)) {
      EXPECT_EQ(output.lost.empty(), output.name != "w13_bias") << output.name;
    }
    const auto restored = undo_layout(make_outputs(*layout, input), input.loaded, written);
    const auto back = words_of<uint16_t>(restored.at(Slot::kW13Bias));
    EXPECT_EQ(back[1], 0x3F80);
    EXPECT_EQ(back[3], 0x7FFF);
    EXPECT_EQ(back[11], 0x807F);
  }
}

TEST(FlashinferLayout, CutlassRoundsF32Bias) {
  const LayoutInput input = input_of({1, 128, 128}, DType::kF32);
  LoadedLayer layer = drawn_layer(input.loaded, {.seed = 6});
  set_words<uint32_t>(layer.slots[Slot::kW13Bias],
                      {0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x7F800001, 0x7F7FFFFF});
  const Tensors written = run_layout(kFlashinferCutlassMxfp8Layout, input, layer, std::byte{0});
  EXPECT_EQ(written.at("w13_bias").spec.dtype, DType::kBF16);
  EXPECT_EQ(written.at("w2_bias").spec.dtype, DType::kF32);
  const auto w13 = words_of<uint16_t>(written.at("w13_bias"));
  EXPECT_EQ(std::vector<uint16_t>(w13.begin(), w13.begin() + 3),
            (std::vector<uint16_t>{0x3F82, 0x3F80, 0x7F80}));
  EXPECT_EQ(std::vector<uint16_t>(w13.begin() + 128, w13.begin() + 131),
            (std::vector<uint16_t>{0x3F80, 0x3F81, 0x7FFF}));
}

TEST(DeepgemmLayout, ShiftsEveryScaleCodeIntoTheExponent) {
  const LayoutInput input = input_of({1, 128, 128}, std::nullopt, Family::kGeneric);
  LoadedLayer layer = drawn_layer(input.loaded, {.seed = 8});
  Tensor& scales = layer.slots[Slot::kW13WeightScale];
  for (size_t i = 0; i < scales.bytes.size(); ++i) scales.bytes[i] = static_cast<std::byte>(i);
  const Tensors written = run_layout(kDeepgemmF32Layout, input, layer, std::byte{0});
  const auto words = words_of<uint32_t>(written.at("w13_weight_scale"));
  for (uint32_t code = 0; code < 256; ++code) ASSERT_EQ(words[code], code << 23);
  EXPECT_EQ(undo_layout(make_outputs(kDeepgemmF32Layout, input), input.loaded, written),
            layer.slots);
}

}  // namespace
}  // namespace mxfp4::test
