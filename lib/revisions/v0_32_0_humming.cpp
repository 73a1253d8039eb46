// HUMMING's layouts from vLLM 0.32.0 on (humming-kernels 0.1.17 and 0.1.19): by the type of
// activations and the compute capability (schema/humming.py, is_humming_schema_compatible;
// config/config.py, LayerConfig).
#include "lib/revisions/v0_32_0_humming.hpp"

#include "lib/layouts/all.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/revisions/edit.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

// The knob's value may also be the key of activations that Humming does not have.
std::string type_of(const Target& t) { return t.knob("humming_input_dtype", "none"); }
bool is_fp8(const Target& t) { return type_of(t).starts_with("float8e4m3"); }
bool is_fp8_group32(const Target& t) { return type_of(t) == "float8e4m3-group32"; }
bool is_fp8_group128(const Target& t) { return type_of(t) == "float8e4m3-group128"; }
bool is_fp4(const Target& t) { return type_of(t) == "float4e2m1"; }
bool is_none(const Target& t) { return type_of(t) == "none"; }
bool is_int8(const Target& t) { return type_of(t) == "int8"; }

// False where the arch is not told.
bool capability_from(const Target& t, int least) {
  return cuda_capability(t.arch).value_or(0) >= least;
}
bool capability_below(const Target& t, int bound) {
  return cuda_capability(t.arch).value_or(bound) < bound;
}
bool capability_12(const Target& t) { return cuda_capability(t.arch).value_or(0) / 10 == 12; }
bool umma(const Target& t) { return capability_from(t, 100) && capability_below(t, 120); }

bool float16_params(const Target& t) { return params_dtype(t) == "float16"; }
bool not_told(const Target& t) { return !t.knobs.contains("humming_input_dtype"); }
bool other_type(const Target& t) { return !is_none(t) && !is_fp8(t) && !is_int8(t) && !is_fp4(t); }
bool static_fp8(const Target& t) { return type_of(t) == "fp8_per_tensor_static"; }
bool too_old_for_bf16(const Target& t) { return is_none(t) && capability_below(t, 80); }
bool too_old_for_int8(const Target& t) { return is_int8(t) && capability_below(t, 75); }
bool too_old_for_fp8(const Target& t) { return is_fp8(t) && capability_below(t, 89); }
bool too_old_for_fp4(const Target& t) { return is_fp4(t) && capability_below(t, 100); }
bool group128_elsewhere(const Target& t) {
  return is_fp8_group128(t) && cuda_capability(t.arch).value_or(90) != 90;
}
bool group32_on_12(const Target& t) { return is_fp8_group32(t) && capability_12(t); }
bool bf16_from_10(const Target& t) { return is_none(t) && capability_from(t, 100); }

bool bf16_mma(const Target& t) { return is_none(t) && capability_below(t, 100); }
bool int8(const Target& t) { return is_int8(t) && cuda_capability(t.arch); }
bool fp8_packed_k(const Target& t) { return is_fp8_group128(t) && cuda_capability(t.arch) == 90; }
bool fp8(const Target& t) {
  return is_fp8(t) && capability_below(t, is_fp8_group32(t) ? 120 : 100);
}
bool fp8_or_fp4_umma(const Target& t) { return (is_fp8(t) || is_fp4(t)) && umma(t); }
bool fp8_mxmma(const Target& t) { return is_fp8(t) && capability_12(t); }
bool fp4_mxmma(const Target& t) { return is_fp4(t) && capability_12(t); }

constexpr std::string_view kFloat16 = "this release packs scales otherwise for FP16: not executed";
constexpr std::string_view kNotTold =
    "its bytes depend on the type of activations, which neither the input nor a flag tells: give "
    "--knob humming_input_dtype=none where they stay in BF16";
constexpr std::string_view kStatic =
    "Humming wants the static scale of such activations as a tensor, which this method's layers do "
    "not have: loading stops with KeyError";
constexpr std::string_view kOther =
    "Humming has no such activations for MXFP4 weights: loading stops with ValueError";
constexpr std::string_view kNoBf16 =
    "Humming has BF16 activations from capability 8.0 on: loading stops with ValueError";
constexpr std::string_view kNoInt8 =
    "Humming has INT8 activations from capability 7.5 on: loading stops with ValueError";
constexpr std::string_view kNoFp8 =
    "Humming has FP8 activations from capability 8.9 on: loading stops with ValueError";
constexpr std::string_view kNo4Bit =
    "Humming has no 4-bit activations for MXFP4 weights below capability 10.0: loading stops with "
    "ValueError";
constexpr std::string_view kGroup128 =
    "Humming has FP8 activations in groups of 128 on capability 9.0 alone: loading stops with "
    "ValueError";
constexpr std::string_view kGroup32 =
    "Humming has no FP8 activations with F32 scales in groups of 32 on capability 12.x: loading "
    "stops with AssertionError";
constexpr std::string_view kCompiler =
    "for BF16 activations humming-kernels packs for this capability as the CUDA compiler of the "
    "serving machine allows";

LayoutRow refused(TargetCondition when, std::string_view reason, std::string_view type = "") {
  return {HUMMING, {}, when, nullptr, reason, type};
}
LayoutRow packed(TargetCondition when, const Layout& layout) {
  return {HUMMING, {}, when, &layout};
}

}  // namespace

void allow_humming_0_32(RuleSet& rules) {
  std::erase_if(rules.layouts, [](const LayoutRow& row) { return row.backend == HUMMING; });
  edit::add_layouts(
      rules,
      {refused({"params_dtype float16", float16_params}, kFloat16),
       refused({"humming_input_dtype not told", not_told}, kNotTold),
       refused({"static FP8 activations", static_fp8}, kStatic, "KeyError"),
       refused({"other quantized activations", other_type}, kOther, "ValueError"),
       refused({"BF16 activations, CUDA capability below 8.0", too_old_for_bf16}, kNoBf16,
               "ValueError"),
       refused({"INT8 activations, CUDA capability below 7.5", too_old_for_int8}, kNoInt8,
               "ValueError"),
       refused({"FP8 activations, CUDA capability below 8.9", too_old_for_fp8}, kNoFp8,
               "ValueError"),
       refused({"4-bit activations, CUDA capability below 10.0", too_old_for_fp4}, kNo4Bit,
               "ValueError"),
       refused(
           {"FP8 activations in groups of 128, CUDA capability other than 9.0", group128_elsewhere},
           kGroup128, "ValueError"),
       refused(
           {"FP8 activations with F32 scales in groups of 32, CUDA capability 12.x", group32_on_12},
           kGroup32, "AssertionError"),
       refused({"BF16 activations, CUDA capability 10.0 or above", bf16_from_10}, kCompiler),
       packed({"BF16 activations, CUDA capability 8.0 to 9.x", bf16_mma}, kHummingMmaLayout),
       packed({"INT8 activations", int8}, kHummingInt8Layout),
       packed({"FP8 activations in groups of 128", fp8_packed_k}, kHummingFp8PackedKLayout),
       packed(
           {"FP8 activations, CUDA capability 8.9 to 9.x, with F32 scales in groups of 32 to 11.x",
            fp8},
           kHummingFp8Layout),
       packed({"FP8 or MXFP4 activations, CUDA capability 10.x or 11.x", fp8_or_fp4_umma},
              kHummingUmmaLayout),
       packed({"FP8 activations, CUDA capability 12.x", fp8_mxmma}, kHummingMxmmaFp8Layout),
       packed({"MXFP4 activations, CUDA capability 12.x", fp4_mxmma}, kHummingMxmmaFp4Layout)});
}

}  // namespace mxfp4
