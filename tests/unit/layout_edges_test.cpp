// What a layout refuses: sizes, biases, block scales. Its bytes are compared elsewhere, with what
// the engines made and with its formula (tests/cli/formulas.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/humming_layouts.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/output.hpp"
#include "lib/layouts/run_output.hpp"
#include "lib/layouts/triton_layouts.hpp"

namespace mxfp4 {
namespace {

LayoutInput layer_of(LayerDims dims, std::optional<DType> bias, bool input_scales = false) {
  LayoutInput input;
  input.loaded = {dims, bias, input_scales};
  return input;
}

// The refusal, or "".
std::string refusal_of(const Layout& layout, const LayoutInput& input) {
  try {
    (void)make_outputs(layout, input);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported) << error.what();
    return error.what();
  }
  return "";
}

TEST(LayoutEdges, SizesThatDoNotFillATile) {
  struct Sizes {
    std::vector<const Layout*> layouts;
    int64_t hidden, inter;
    const char* text;
  };
  const Sizes table[] = {
      {{&kTritonHopperKInterleavedLayout, &kTritonBlackwellKInterleavedLayout,
        &kTritonStridedKInterleavedLayout, &kTriton38StridedKInterleavedLayout},
       96,
       64,
       "hidden size must be a multiple of 64, found 96"},
      {{&kTritonCdna4Layout, &kTritonCdna4KInterleavedLayout, &kTritonCdna4RowInterleavedLayout,
        &kAiterW4a16Layout, &kAiterW4a4Layout, &kAiterW4a8Fp8Layout},
       384,
       256,
       "hidden size must be a multiple of 256, found 384"},
      {{&kTritonCdna4Layout, &kTritonCdna4KInterleavedLayout, &kTritonCdna4RowInterleavedLayout,
        &kAiterW4a16Layout, &kAiterW4a4Layout, &kAiterW4a8Fp8Layout},
       256,
       384,
       "intermediate size must be a multiple of 256, found 384"},
      {{&kTriton38Gfx1250Layout, &kTriton38Gfx1250KInterleavedLayout,
        &kTriton38Gfx1250RowInterleavedLayout},
       320,
       256,
       "hidden size must be a multiple of 128, found 320"},
      {{&kTriton38Gfx1250Layout, &kFlashinferTrtllmLayout, &kFlashinferCutlassSm90Layout,
        &kFlashinferCutlassSm90FoldedLayout, &kFlashinferCutlassMxfp8Layout},
       256,
       192,
       "192"},
      {{&kMarlinW4A16Layout, &kMarlinW4A8Fp8Layout},
       160,
       64,
       "w2_weight: size_n = 160 is not divisible by tile_n_size = 64"},
      {{&kAiterInt4Layout}, 96, 64, "96"},
      {{&kAiterInt4Layout}, 64, 96, "96"},
  };
  for (const Sizes& row : table) {
    for (const Layout* layout : row.layouts) {
      const auto input = layer_of({1, row.hidden, row.inter}, DType::kBF16, true);
      EXPECT_NE(refusal_of(*layout, input).find(row.text), std::string::npos)
          << id_of(*layout) << ": " << refusal_of(*layout, input);
    }
  }
}

TEST(LayoutEdges, TensorsThatAreMissing) {
  for (const Layout* layout :
       {&kFlashinferTrtllmLayout, &kFlashinferCutlassSm90Layout,
        &kFlashinferCutlassSm90FoldedLayout, &kFlashinferCutlassMxfp8Layout}) {
    EXPECT_NE(refusal_of(*layout, layer_of({1, 128, 128}, std::nullopt)), "") << id_of(*layout);
  }
  EXPECT_EQ(refusal_of(kAiterW4a8Fp8Layout, layer_of({1, 256, 256}, DType::kBF16)),
            "W4A8 (AITER_MXFP4_FP8) requires static input scales, but found w13_input_scale or "
            "w2_input_scale is None.");
  LayoutInput half = layer_of({1, 160, 64}, DType::kBF16);
  half.parameters.params_dtype = "float16";
  EXPECT_EQ(refusal_of(kHummingWgmmaLayout, half),
            "bias dtype mismatched: expected torch.float16, found torch.bfloat16");
}

// Scales of w2 that are all `low` but one.
struct Scales {
  const Layout* layout;
  const char *params_dtype, *input_dtype;
  int low, fits, refused;
  const char* text;
};

TEST(LayoutEdges, BlockScalesThatAKernelCannotHold) {
  const Scales table[] = {
      {&kMarlinW4A8Fp8Layout, "bfloat16", "none", 249, 249, 250,
       "the largest scale byte of an expert may be 249 with fp8 activations, found 250"},
      {&kMarlinW4A8Fp8Layout, "float16", "none", 142, 142, 143, "after conversion to float16"},
      {&kAiterInt4Layout, "bfloat16", "none", 120, 252, 253, "253"},
      {&kAiterInt4Layout, "bfloat16", "none", 120, 0, 255, "255"},
      {&kHummingW4A8Layout, "bfloat16", "float8e4m3", 100, 239, 240,
       "scale bytes of an expert may lie at most 139 apart with 8-bit activations, found 100 to "
       "240"},
      {&kHummingInt8Layout, "bfloat16", "none", 100, 230, 231,
       "scale bytes of a row may lie at most 130 apart with 8-bit activations, found 100 to 231"},
      {&kHummingFp8Layout, "bfloat16", "none", 100, 238, 239,
       "scale bytes of an expert may lie at most 138 apart with 8-bit activations, found 100 to "
       "239"},
      {&kHummingInt8Layout, "float16", "none", 142, 143, 147,
       "float16 has no number for the second scale of a row"},
  };
  for (const Scales& row : table) {
    SCOPED_TRACE(id_of(*row.layout));
    LayoutInput input = layer_of({1, 256, 128}, std::nullopt);
    input.parameters.params_dtype = row.params_dtype;
    input.parameters.humming_input_dtype = row.input_dtype;
    std::vector<std::byte> scales(size_t{256} * 4, static_cast<std::byte>(row.low));
    scales[3] = static_cast<std::byte>(row.fits);
    EXPECT_EQ(check_granule(*row.layout, input, Slot::kW2WeightScale, scales), "");
    scales[3] = static_cast<std::byte>(row.refused);
    EXPECT_EQ(check_granule(*row.layout, input, Slot::kW2Weight, scales), "") << "codes";
    try {
      (void)check_granule(*row.layout, input, Slot::kW2WeightScale, scales);
      ADD_FAILURE() << "takes " << row.refused;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
      EXPECT_NE(std::string(error.what()).find(row.text), std::string::npos) << error.what();
    }
  }
}

// One expert's output from `words` at the start of its slot; all else is 0.
template <class Word>
std::vector<Word> packed(const Layout& layout, const LayoutInput& input, std::string_view name,
                         const std::vector<Word>& words) {
  const std::vector<Output> outputs = make_outputs(layout, input);
  const Output& output = *std::ranges::find(outputs, name, &Output::name);
  std::vector<std::byte> in(static_cast<size_t>(input.loaded.expert(output.slot).bytes()));
  std::memcpy(in.data(), words.data(), words.size() * sizeof(Word));
  SlotBytes slots;
  slots.set(output.slot, in);
  std::vector<std::byte> out(static_cast<size_t>(output.program.out_bytes()));
  std::vector<std::byte> scratch(static_cast<size_t>(scratch_bytes(output, Direction::kForward)));
  run_forward(output, slots, out, scratch);
  std::vector<Word> result(out.size() / sizeof(Word));
  std::memcpy(result.data(), out.data(), out.size());
  return result;
}

// As seen on the GPU: every NaN of w13_bias becomes 7FFF; infinities, zeros and subnormals and all
// of w2_bias stay.
TEST(LayoutEdges, CutlassMakesOneNanOfAll) {
  using Words = std::vector<uint16_t>;
  const Words special = {0x7FC0, 0x3F80, 0x7F81, 0xFFC0, 0xFFFF, 0xFF80, 0x8000, 0x0001};
  const auto input = layer_of({1, 128, 128}, DType::kBF16);
  for (const Layout* layout : {&kFlashinferCutlassSm90Layout, &kFlashinferCutlassSm90FoldedLayout,
                               &kFlashinferCutlassMxfp8Layout}) {
    const Words w13 = packed(*layout, input, "w13_bias", special);
    EXPECT_EQ(Words(w13.begin(), w13.begin() + 4), Words({0x3F80, 0x7FFF, 0xFF80, 0x0001}));
    EXPECT_EQ(Words(w13.begin() + 128, w13.begin() + 132), Words({0x7FFF, 0x7FFF, 0x7FFF, 0x8000}));
    const Words w2 = packed(*layout, input, "w2_bias", special);
    EXPECT_EQ(Words(w2.begin(), w2.begin() + 8), special);
  }
}

// F32 biases are rounded to the nearest BF16, ties to even.
TEST(LayoutEdges, WideBiasesAreRounded) {
  const std::vector<uint32_t> wide = {0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF};
  const auto input = layer_of({1, 128, 128}, DType::kF32);
  const auto first_of = [&](const Layout& layout, const char* name) {
    return packed(layout, input, name, wide);
  };
  const auto w13 = first_of(kFlashinferCutlassMxfp8Layout, "w13_bias");
  EXPECT_EQ(w13[0], 0x3F803F82U);   // rows 3 and 1
  EXPECT_EQ(w13[64], 0x3F813F80U);  // rows 2 and 0
  const auto marlin = first_of(kMarlinW4A16Layout, "w2_bias");
  EXPECT_EQ(marlin[0], 0x3F823F80U);  // rows 1 and 0
}

// Base 255 is infinite, halved or not.
TEST(LayoutEdges, TheLargestSecondScaleIsInfinite) {
  LayoutInput input = layer_of({1, 256, 128}, std::nullopt);
  input.parameters.humming_input_dtype = "int8";
  const std::vector<uint32_t> largest(256, 0xFFFFFFFF);
  for (const auto& [layout, name] : {std::pair(&kHummingW4A8Layout, "w2_global_scale"),
                                     std::pair(&kHummingFp8Layout, "w2_weight_scale_2")}) {
    EXPECT_EQ(packed(*layout, input, name, largest), std::vector<uint32_t>{0x7F800000});
  }
}

}  // namespace
}  // namespace mxfp4
