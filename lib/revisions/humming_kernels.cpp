// HUMMING's layouts by the type of activations, the params dtype and the compute capability
// (config/config.py, LayerConfig; kernel/humming.py, check_dtype and check_scale; from 0.1.16 on
// schema/humming.py, is_humming_schema_compatible).
#include "lib/revisions/humming_kernels.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "lib/layouts/humming_layouts.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/revisions/edit.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

// The knob's value may also be the key of activations that Humming does not have.
std::string type_of(const Target& t) { return t.knob("humming_input_dtype", "none"); }
bool is_none(const Target& t) { return type_of(t) == "none"; }
bool is_fp8(const Target& t) { return type_of(t).starts_with("float8e4m3"); }
bool is_fp8_group64(const Target& t) { return type_of(t) == "float8e4m3-group64"; }
bool is_fp8_group32(const Target& t) { return type_of(t) == "float8e4m3-group32"; }
bool is_fp8_group128(const Target& t) { return type_of(t) == "float8e4m3-group128"; }
bool is_fp8_large_groups(const Target& t) { return is_fp8_group64(t) || is_fp8_group128(t); }
bool is_fp8_grouped(const Target& t) { return is_fp8_group32(t) || is_fp8_large_groups(t); }
bool is_fp4(const Target& t) { return type_of(t) == "float4e2m1"; }
bool is_int8(const Target& t) { return type_of(t) == "int8"; }
bool fp16_params(const Target& t) { return params_dtype(t) == "float16"; }
bool is_fp16(const Target& t) { return is_none(t) && fp16_params(t); }
bool is_bf16(const Target& t) { return is_none(t) && !fp16_params(t); }

// False where the arch is not known.
bool arch_from(const Target& t, int least) { return cuda_capability(t.arch).value_or(0) >= least; }
bool arch_below(const Target& t, int bound) {
  return cuda_capability(t.arch).value_or(bound) < bound;
}
bool arch_9(const Target& t) { return cuda_capability(t.arch).value_or(0) / 10 == 9; }
bool arch_12(const Target& t) { return cuda_capability(t.arch).value_or(0) / 10 == 12; }
bool umma(const Target& t) { return arch_from(t, 100) && arch_below(t, 120); }

// A CUDA compiler from this version on converts e2m1 to the type of 16-bit activations by itself.
CompilerVersion native_from(const Target& t) {
  return fp16_params(t) ? CompilerVersion{12, 7} : CompilerVersion{13, 2};
}
bool native(const Target& t) {
  return is_none(t) && arch_from(t, 100) &&
         cuda_compiler(t).value_or(CompilerVersion{}) >= native_from(t);
}

// --- what is refused ---

bool dtype_not_known(const Target& t) { return !t.knobs.contains("humming_input_dtype"); }
bool other_type(const Target& t) { return !is_none(t) && !is_fp8(t) && !is_int8(t) && !is_fp4(t); }
bool static_fp8(const Target& t) { return type_of(t) == "fp8_per_tensor_static"; }
bool too_old_for_bf16(const Target& t) { return is_bf16(t) && arch_below(t, 80); }
bool too_old_for_fp16(const Target& t) { return is_fp16(t) && arch_below(t, 75); }
bool too_old_for_int8(const Target& t) { return is_int8(t) && arch_below(t, 75); }
bool too_old_for_fp8(const Target& t) { return is_fp8(t) && arch_below(t, 89); }
bool fp4_below_10(const Target& t) { return is_fp4(t) && arch_below(t, 100); }
bool fp4_below_12(const Target& t) { return is_fp4(t) && arch_below(t, 120); }
bool large_groups_on_12(const Target& t) { return is_fp8_large_groups(t) && arch_12(t); }
bool group128_elsewhere(const Target& t) {
  return is_fp8_group128(t) && cuda_capability(t.arch).value_or(90) != 90;
}
bool group32_on_12(const Target& t) { return is_fp8_group32(t) && arch_12(t); }
bool compiler_not_known(const Target& t) {
  return is_none(t) && arch_from(t, 100) && !cuda_compiler(t);
}

constexpr std::string_view kNotKnown =
    "its bytes depend on the type of activations, which neither the input nor a flag says: give "
    "--knob humming_input_dtype=none where they stay in BF16";
constexpr std::string_view kStatic =
    "Humming wants the static scale of such activations as a tensor, which this method's layers do "
    "not have: loading stops with KeyError";
constexpr std::string_view kOther =
    "Humming has no such activations for MXFP4 weights: loading stops with ValueError";
constexpr std::string_view kKernelOther =
    "Humming has no such activations for MXFP4 weights: its kernel stops with AssertionError";
constexpr std::string_view kNoBf16 =
    "Humming has BF16 activations from capability 8.0 on: loading stops with ValueError";
constexpr std::string_view kKernelNoBf16 =
    "Humming has BF16 activations from capability 8.0 on: its kernel stops with AssertionError";
constexpr std::string_view kNoFp16 = "Humming has FP16 activations from capability 7.5 on";
constexpr std::string_view kNoInt8 =
    "Humming has INT8 activations from capability 7.5 on: loading stops with ValueError";
constexpr std::string_view kKernelNoInt8 =
    "Humming has INT8 activations from capability 7.5 on: its kernel stops with AssertionError";
constexpr std::string_view kKernelInt8 =
    "this Humming has no INT8 activations for MXFP4 weights: its kernel stops with "
    "NotImplementedError";
constexpr std::string_view kNoFp8 =
    "Humming has FP8 activations from capability 8.9 on: loading stops with ValueError";
constexpr std::string_view kKernelNoFp8 =
    "Humming has FP8 activations from capability 8.9 on: its kernel stops with AssertionError";
constexpr std::string_view kNo4Bit =
    "Humming has no 4-bit activations for MXFP4 weights below capability 10.0: loading stops with "
    "ValueError";
constexpr std::string_view kNo4BitBelow12 =
    "Humming has 4-bit activations from capability 12.0 on: loading stops with ValueError";
constexpr std::string_view kKernelNo4BitBelow12 =
    "Humming has 4-bit activations from capability 12.0 on: its kernel stops with AssertionError";
constexpr std::string_view kKernel4Bit =
    "with 4-bit activations this Humming takes no scales by 32: its kernel stops with "
    "AssertionError";
constexpr std::string_view kGrouped =
    "this Humming has no FP8 activations with F32 scales by group for MXFP4 weights: loading stops "
    "with ValueError";
constexpr std::string_view kGroup128 =
    "Humming has FP8 activations in groups of 128 on capability 9.0 only: loading stops with "
    "ValueError";
constexpr std::string_view kGroup32 =
    "Humming has no FP8 activations with F32 scales in groups of 32 on capability 12.x: loading "
    "stops with AssertionError";
constexpr std::string_view kCompiler =
    "from capability 10.0 on the order of its codes depends on the CUDA compiler that "
    "humming-kernels finds on the serving machine: give a target file of probe-target there, or "
    "--knob cuda_compiler=VERSION";

// --- rows ---

LayoutRow asking(TargetCondition when, std::string_view reason) {
  return {HUMMING, {}, when, nullptr, reason, {}, /*asks=*/true};
}
LayoutRow refused(TargetCondition when, std::string_view reason, std::string_view type = "") {
  return {HUMMING, {}, when, nullptr, reason, type};
}
LayoutRow packed(TargetCondition when, const Layout& layout) {
  return {HUMMING, {}, when, &layout};
}

bool cuda_known(const Target& t) { return cuda_capability(t.arch).has_value(); }

constexpr TargetCondition kInt8{"INT8 activations",
                                [](const Target& t) { return is_int8(t) && cuda_known(t); }};
constexpr TargetCondition kFp8Below12{
    "FP8 activations, CUDA capability 8.9 to 11.x",
    [](const Target& t) { return is_fp8(t) && arch_below(t, 120); }};
constexpr TargetCondition kFp8On12{"FP8 activations, CUDA capability 12.x",
                                   [](const Target& t) { return is_fp8(t) && arch_12(t); }};
constexpr TargetCondition kFp4On12{"MXFP4 activations, CUDA capability 12.x",
                                   [](const Target& t) { return is_fp4(t) && arch_12(t); }};
constexpr TargetCondition kWgmma{"16-bit activations, CUDA capability 9.x",
                                 [](const Target& t) { return is_none(t) && arch_9(t); }};
constexpr TargetCondition kMma{"16-bit activations",
                               [](const Target& t) { return is_none(t) && cuda_known(t); }};
constexpr TargetCondition kNative{
    "16-bit activations, CUDA capability 10.0 or above, cuda_compiler from 13.2 (BF16) or 12.7 "
    "(FP16) on",
    native};

void replace_layouts(RuleSet& rules, std::vector<LayoutRow> rows) {
  edit::drop_layouts(rules, HUMMING);
  edit::add_layouts(rules, std::move(rows));
  std::erase_if(rules.input_dtypes,
                [](const InputDtypeRow& row) { return row.backend == HUMMING; });
}

// The rows of HUMMING, and activations that only the variable says.
void replace_rows(RuleSet& rules, std::vector<LayoutRow> rows) {
  replace_layouts(rules, std::move(rows));
  for (const Family family : {Family::kGptOss, Family::kGeneric}) {
    rules.input_dtypes.push_back({.backend = HUMMING,
                                  .family = family,
                                  .knob = "humming_input_dtype",
                                  .variable = "VLLM_HUMMING_INPUT_QUANT_CONFIG"});
  }
}

// Humming's kernels before 0.1.16 refuse what its converter lets through.
std::vector<LayoutRow> refused_by_kernels() {
  return {
      asking({"humming_input_dtype not known", dtype_not_known}, kNotKnown),
      refused({"other quantized activations", other_type}, kKernelOther, "AssertionError"),
      refused({"BF16 activations, CUDA capability below 8.0", too_old_for_bf16}, kKernelNoBf16,
              "AssertionError"),
      refused({"FP16 activations, CUDA capability below 7.5", too_old_for_fp16}, kNoFp16),
      refused({"FP8 activations, CUDA capability below 8.9", too_old_for_fp8}, kKernelNoFp8,
              "AssertionError"),
  };
}

// From 0.1.16 on the converter asks whether its kernels can run.
std::vector<LayoutRow> refused_when_loading() {
  return {
      asking({"humming_input_dtype not known", dtype_not_known}, kNotKnown),
      asking({"16-bit activations, CUDA capability 10.0 or above, cuda_compiler not known",
              compiler_not_known},
             kCompiler),
      refused({"other quantized activations", other_type}, kOther, "ValueError"),
      refused({"BF16 activations, CUDA capability below 8.0", too_old_for_bf16}, kNoBf16,
              "ValueError"),
      refused({"FP16 activations, CUDA capability below 7.5", too_old_for_fp16}, kNoFp16),
      refused({"INT8 activations, CUDA capability below 7.5", too_old_for_int8}, kNoInt8,
              "ValueError"),
      refused({"FP8 activations, CUDA capability below 8.9", too_old_for_fp8}, kNoFp8,
              "ValueError"),
  };
}

}  // namespace

void humming_kernels_0_1_4(RuleSet& rules) {
  std::vector<LayoutRow> rows = refused_by_kernels();
  rows.insert(
      rows.end(),
      {refused(kInt8, kKernelInt8, "NotImplementedError"),
       refused({"4-bit activations", is_fp4}, kKernel4Bit, "AssertionError"),
       packed({"FP8 activations", [](const Target& t) { return is_fp8(t) && cuda_known(t); }},
              kHummingFp8GlobalLayout),
       packed(kWgmma, kHummingWgmmaLayout), packed(kMma, kHummingMmaLayout)});
  replace_rows(rules, std::move(rows));
}

void humming_kernels_0_1_12(RuleSet& rules) {
  std::vector<LayoutRow> rows = refused_by_kernels();
  rows.insert(
      rows.end(),
      {refused({"INT8 activations, CUDA capability below 7.5", too_old_for_int8}, kKernelNoInt8,
               "AssertionError"),
       refused({"4-bit activations, CUDA capability below 12.0", fp4_below_12},
               kKernelNo4BitBelow12, "AssertionError"),
       packed(kInt8, kHummingInt8Layout),
       packed({"FP8 activations in groups of 64 or 128, CUDA capability 12.x", large_groups_on_12},
              kHummingFp8Layout),
       packed(kFp8On12, kHummingMxmmaFp8Layout), packed(kFp8Below12, kHummingFp8Layout),
       packed(kFp4On12, kHummingMxmmaFp4TilesLayout), packed(kWgmma, kHummingWgmmaLayout),
       packed(kMma, kHummingMmaLayout)});
  replace_rows(rules, std::move(rows));
}

void humming_kernels_0_1_16(RuleSet& rules) {
  std::vector<LayoutRow> rows = refused_when_loading();
  rows.insert(
      rows.end(),
      {refused({"FP8 activations with F32 scales by group", is_fp8_grouped}, kGrouped,
               "ValueError"),
       refused({"4-bit activations, CUDA capability below 12.0", fp4_below_12}, kNo4BitBelow12,
               "ValueError"),
       packed(kInt8, kHummingInt8Layout), packed(kFp8On12, kHummingMxmmaFp8Layout),
       packed(kFp8Below12, kHummingFp8Layout), packed(kFp4On12, kHummingMxmmaFp4TilesLayout),
       packed(kNative, kHummingMmaNativeLayout), packed(kWgmma, kHummingWgmmaLayout),
       packed(kMma, kHummingMmaLayout)});
  replace_rows(rules, std::move(rows));
}

void humming_kernels_0_1_17(RuleSet& rules) {
  std::vector<LayoutRow> rows = {
      refused({"static FP8 activations", static_fp8}, kStatic, "KeyError")};
  std::ranges::copy(refused_when_loading(), std::back_inserter(rows));
  rows.insert(
      rows.end(),
      {refused({"FP8 activations in groups of 64", is_fp8_group64}, kOther, "ValueError"),
       refused({"4-bit activations, CUDA capability below 10.0", fp4_below_10}, kNo4Bit,
               "ValueError"),
       refused(
           {"FP8 activations in groups of 128, CUDA capability other than 9.0", group128_elsewhere},
           kGroup128, "ValueError"),
       refused(
           {"FP8 activations with F32 scales in groups of 32, CUDA capability 12.x", group32_on_12},
           kGroup32, "AssertionError"),
       packed(kInt8, kHummingInt8Layout),
       packed({"FP8 activations in groups of 128", is_fp8_group128}, kHummingFp8PackedKLayout),
       packed({"FP8 activations with F32 scales in groups of 32", is_fp8_group32},
              kHummingFp8Layout),
       packed({"FP8 or MXFP4 activations, CUDA capability 10.x or 11.x",
               [](const Target& t) { return (is_fp8(t) || is_fp4(t)) && umma(t); }},
              kHummingUmmaLayout),
       packed(kFp8On12, kHummingMxmmaFp8Layout), packed(kFp4On12, kHummingMxmmaFp4Layout),
       packed(kFp8Below12, kHummingFp8Layout),
       packed({"FP16 activations, CUDA capability 10.0 or above, cuda_compiler from 12.7 on",
               [](const Target& t) { return is_fp16(t) && native(t); }},
              kHummingMmaNativeFp16Layout),
       packed({"FP16 activations", [](const Target& t) { return is_fp16(t) && kMma.holds(t); }},
              kHummingMmaFp16Layout),
       packed(kNative, kHummingMmaNativeLayout), packed(kMma, kHummingMmaLayout)});
  replace_rows(rules, std::move(rows));
}

void refuse_humming(RuleSet& rules, std::string_view reason, std::string_view type) {
  replace_layouts(rules, {refused({}, reason, type)});
}

}  // namespace mxfp4
