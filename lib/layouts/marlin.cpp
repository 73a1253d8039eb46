// MARLIN and BATCHED_MARLIN, both families alike, any architecture; rows keep their loaded order.
// The tiles are mma_tiles.hpp's: mma_weight_tiles, with fp8 activations w8_activation_weight_tiles.
// With the params dtype float16 scale bytes and biases pass through float16, which loses values.
//
// Example: the scale of row n = 9 goes to column 10.
#include <fmt/format.h>

#include <algorithm>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/mma_tiles.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/slot_outputs.hpp"
#include "lib/steps/element_map.hpp"
#include "lib/steps/float_recodings.hpp"

namespace mxfp4 {
namespace {

enum class Activation { k16Bit, kFp8 };

// fp4 -> fp8 needs this much more exponent bias: 2^3 - 2^1.
constexpr int kFp8ExponentShift = 6;
constexpr int kFp8LargestScale = 255 - kFp8ExponentShift;

// An e8m0 byte after a round trip through float16: 2^-24 is the smallest value, 2^15 the largest.
uint8_t through_f16(uint8_t scale) {
  if (scale < 127 - 24) return 0;
  return scale > 127 + 15 ? 255 : scale;
}

const Recoding kE8m0ThroughF16 = {
    "e8m0 -> f16 -> e8m0",
    1,
    1,
    [](ConstBytes in, MutableBytes out) { map_elements<uint8_t, uint8_t>(in, out, through_f16); },
    [](ConstBytes in, MutableBytes out) { std::ranges::copy(in, out.begin()); },
};

const Recoding kShiftE8m0ForFp8 = {
    "e8m0 * 2^6",
    1,
    1,
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint8_t, uint8_t>(
          in, out, [](uint8_t v) { return static_cast<uint8_t>(v + kFp8ExponentShift); });
    },
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint8_t, uint8_t>(
          in, out, [](uint8_t v) { return static_cast<uint8_t>(v - kFp8ExponentShift); });
    },
};

// The scale order of 16-bit activations. A matrix of a single group is ordered like a bias, and its
// middle two of each four are exchanged too: an oddity of the reference below its rounded sizes.
Permute scale_order_16bit(int64_t n, int64_t groups) {
  if (groups <= 1) return {Unit::kByte, {n / 32, 2, 2, 4, 2, groups}, {5, 0, 3, 1, 4, 2}};
  return {Unit::kByte, {n / 64, 2, 2, 2, 8, groups}, {5, 0, 4, 1, 3, 2}};
}

// mma_bias_order on the rows, then transposed.
Permute scale_order_fp8(int64_t n, int64_t groups) {
  return {Unit::kByte, {n / 32, 4, 4, 2, groups}, {4, 0, 2, 1, 3}};
}

Output marlin_weight_output(const LayoutInput& input, const MoeMatrix& m, Activation activation) {
  Program program(m.n * m.k / kCodesPerByte);
  program.then(activation == Activation::kFp8 ? w8_activation_weight_tiles(m.n, m.k)
                                              : mma_weight_tiles(m.n, m.k));
  return slot_output(input.loaded, m.weight,
                     {DType::kI32, {input.loaded.dims.num_experts, m.k / 16, 2 * m.n}},
                     std::move(program));
}

Output marlin_scale_output(const LayoutInput& input, const MoeMatrix& m, Activation activation) {
  const int64_t groups = m.k / kBlock;
  const int64_t count = m.n * groups;
  const bool half = input.parameters.params_dtype == "float16";
  Program program(count);
  if (half) program.then(Recode{&kE8m0ThroughF16, count});
  if (activation == Activation::kFp8) {
    program.then(scale_order_fp8(m.n, groups)).then(Recode{&kShiftE8m0ForFp8, count});
  } else {
    program.then(scale_order_16bit(m.n, groups));
  }
  Output output =
      slot_output(input.loaded, m.scale, {DType::kU8, {input.loaded.dims.num_experts, groups, m.n}},
                  std::move(program));
  output.storage.torch_dtype = "float8_e8m0fnu";
  if (half) output.lost = "scale bytes below 103 became 0, above 142 became 255 (float16)";
  return output;
}

Output marlin_bias_output(const LayoutInput& input, const MoeMatrix& m) {
  const bool half = input.parameters.params_dtype == "float16";
  const bool wide = input.loaded.bias == DType::kF32;
  Program program(input.loaded.expert(m.bias).bytes());
  if (wide) program.then(Recode{half ? &kF32ToF16 : &kF32ToBf16, m.n});
  if (!wide && half) program.then(Recode{&kBf16ToF16, m.n});
  program.then(mma_bias_order(m.n));
  Output output =
      slot_output(input.loaded, m.bias,
                  {half ? DType::kF16 : DType::kBF16, {input.loaded.dims.num_experts, m.n}},
                  std::move(program));
  if (half) output.lost = "bias values were rounded to float16";
  if (wide && !half) output.lost = "bias values were rounded to bfloat16";
  return output;
}

std::vector<Output> marlin_outputs(const LayoutInput& input, Activation activation) {
  const auto matrices = moe_matrices(input.loaded.dims);
  for (const MoeMatrix& m : matrices) {
    if (m.n % 64 != 0) {
      throw Error::unsupported(fmt::format("{}: size_n = {} is not divisible by tile_n_size = 64",
                                           slot_name(m.weight), m.n))
          .reference_type("RuntimeError");
    }
    require_multiple("marlin", fmt::format("columns of {}", slot_name(m.weight)), m.k, kBlock);
  }
  std::vector<Output> result;
  result.reserve(3 * matrices.size());
  for (const MoeMatrix& m : matrices) result.push_back(marlin_weight_output(input, m, activation));
  for (const MoeMatrix& m : matrices) result.push_back(marlin_scale_output(input, m, activation));
  if (!input.loaded.bias) return result;
  for (const MoeMatrix& m : matrices) result.push_back(marlin_bias_output(input, m));
  return result;
}

// The reference asserts on the largest scale of each expert's matrix.
std::string check_fp8_scales(const LayoutInput& input, Slot slot, ConstBytes granule) {
  if (slot != Slot::kW13WeightScale && slot != Slot::kW2WeightScale) return "";
  const bool half = input.parameters.params_dtype == "float16";
  int largest = 0;
  for (std::byte b : granule) {
    const auto scale = std::to_integer<uint8_t>(b);
    largest = std::max<int>(largest, half ? through_f16(scale) : scale);
  }
  if (largest <= kFp8LargestScale) return "";
  throw Error::unsupported(fmt::format("the largest scale byte of an expert may be {} with fp8 "
                                       "activations, found {}{}",
                                       kFp8LargestScale, largest,
                                       half ? " after conversion to float16" : ""))
      .reference_type("AssertionError");
}

constexpr const char* kMarlinOutputs =
    "w13_weight, w2_weight: I32 [E, K/16, 2N]\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, S, N] (e8m0)\n"
    "w13_bias, w2_bias: BF16 or F16 [E, N] (params_dtype), when loaded";
constexpr const char* kMarlinSource =
    "vLLM a2c8fc6657 quantization/utils/marlin_utils_fp4.py (prepare_moe_mxfp4_layer_for_marlin), "
    "marlin_utils.py, csrc/quantization/marlin/gptq_marlin_repack.cu";

}  // namespace

const Layout kMarlinW4A16Layout = {
    .id = "marlin/w4a16",
    .outputs_doc = kMarlinOutputs,
    .formula =
        "code (n,k): nibble P of word [k/16][c]\n"
        "c = 128*(n/64) + 16*(n%8) + 4*((k%8)/2) + (n%64)/16\n"
        "P = 4*(k%2) + 2*((n/8)%2) + (k/8)%2\n"
        "scale (n,g): [g][64*(n/64) + 8*(n%8) + 4*((n/32)%2) + 2*((n/8)%2) + (n/16)%2]\n"
        "bias n: 32*(n/32) + 8*((n%8)/2) + 2*((n%32)/8) + n%2",
    .preconditions = "H a multiple of 64, I of 32",
    .source = kMarlinSource,
    .outputs = [](const LayoutInput& input) { return marlin_outputs(input, Activation::k16Bit); },
    .reads = {.params_dtype = true},
};

const Layout kMarlinW4A8Fp8Layout = {
    .id = "marlin/w4a8-fp8",
    .outputs_doc = kMarlinOutputs,
    .formula =
        "code (n,k): nibble P of word W\n"
        "W = 128*((k/32)*(N/32) + n/32) + 16*(n%8) + 4*((k%16)/4) + (n%32)/8\n"
        "P = 2*(k%4) + (k/16)%2\n"
        "scale: s + 6\n"
        "scale (n,g): [g][32*(n/32) + 8*((n%8)/2) + 2*((n%32)/8) + n%2]\n"
        "bias n: 32*(n/32) + 8*((n%8)/2) + 2*((n%32)/8) + n%2",
    .preconditions = "H a multiple of 64, I of 32; no scale byte above 249",
    .source = kMarlinSource,
    .outputs = [](const LayoutInput& input) { return marlin_outputs(input, Activation::kFp8); },
    .check_data = check_fp8_scales,
    .reads = {.params_dtype = true},
};

}  // namespace mxfp4
