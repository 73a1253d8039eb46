#include "lib/revisions/humming_rows.hpp"

#include <utility>

#include "lib/revisions/edit.hpp"

namespace mxfp4::humming {
namespace {

using enum Backend;

CompilerVersion native_from(const Target& t) {
  return fp16_params(t) ? CompilerVersion{12, 7} : CompilerVersion{13, 2};
}

bool dtype_not_known(const Target& t) { return !t.knobs.contains("humming_input_dtype"); }
bool other_type(const Target& t) { return !is_none(t) && !is_fp8(t) && !is_int8(t) && !is_fp4(t); }
bool too_old_for_bf16(const Target& t) {
  return is_none(t) && !fp16_params(t) && arch_below(t, 80);
}
bool too_old_for_fp16(const Target& t) { return is_none(t) && fp16_params(t) && arch_below(t, 75); }
bool too_old_for_fp8(const Target& t) { return is_fp8(t) && arch_below(t, 89); }
bool compiler_not_known(const Target& t) {
  return is_none(t) && arch_from(t, 100) && !cuda_compiler(t);
}

constexpr std::string_view kNotKnown =
    "its bytes depend on the type of activations, which neither the input nor a flag says: give "
    "--knob humming_input_dtype=none where they stay in BF16";
constexpr std::string_view kKernelOther =
    "Humming has no such activations for MXFP4 weights: its kernel stops with AssertionError";
constexpr std::string_view kNoBf16 =
    "Humming has BF16 activations from capability 8.0 on: loading stops with ValueError";
constexpr std::string_view kKernelNoBf16 =
    "Humming has BF16 activations from capability 8.0 on: its kernel stops with AssertionError";
constexpr std::string_view kNoFp16 = "Humming has FP16 activations from capability 7.5 on";
constexpr std::string_view kNoInt8 =
    "Humming has INT8 activations from capability 7.5 on: loading stops with ValueError";
constexpr std::string_view kNoFp8 =
    "Humming has FP8 activations from capability 8.9 on: loading stops with ValueError";
constexpr std::string_view kKernelNoFp8 =
    "Humming has FP8 activations from capability 8.9 on: its kernel stops with AssertionError";
constexpr std::string_view kCompiler =
    "from capability 10.0 on the order of its codes depends on the CUDA compiler that "
    "humming-kernels finds on the serving machine: give a target file of probe-target there, or "
    "--knob cuda_compiler=VERSION";

void replace_layouts(RuleSet& rules, std::vector<LayoutRow> rows) {
  edit::drop_layouts(rules, HUMMING);
  edit::add_layouts(rules, std::move(rows));
  std::erase_if(rules.input_dtypes,
                [](const InputDtypeRow& row) { return row.backend == HUMMING; });
}

}  // namespace

bool native(const Target& t) {
  return is_none(t) && arch_from(t, 100) &&
         cuda_compiler(t).value_or(CompilerVersion{}) >= native_from(t);
}

LayoutRow asking(TargetCondition when, std::string_view reason) {
  return {HUMMING, {}, when, nullptr, reason, {}};
}

LayoutRow refused(TargetCondition when, std::string_view reason, std::string_view type) {
  return {HUMMING, {}, when, nullptr, reason, type};
}

LayoutRow packed(TargetCondition when, const Layout& layout) {
  return {HUMMING, {}, when, &layout};
}

void replace_rows(RuleSet& rules, std::vector<LayoutRow> rows) {
  replace_layouts(rules, std::move(rows));
  for (const Family family : {Family::kGptOss, Family::kGeneric}) {
    rules.input_dtypes.push_back({.backend = HUMMING,
                                  .family = family,
                                  .knob = "humming_input_dtype",
                                  .variable = "VLLM_HUMMING_INPUT_QUANT_CONFIG"});
  }
}

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

std::vector<LayoutRow> refused_when_loading() {
  return {
      asking({"humming_input_dtype not known", dtype_not_known}, kNotKnown),
      asking({"16-bit activations, CUDA capability 10.0 or above, cuda_compiler not known",
              compiler_not_known},
             kCompiler),
      refused({"other quantized activations", other_type}, kOtherType, "ValueError"),
      refused({"BF16 activations, CUDA capability below 8.0", too_old_for_bf16}, kNoBf16,
              "ValueError"),
      refused({"FP16 activations, CUDA capability below 7.5", too_old_for_fp16}, kNoFp16),
      refused({"INT8 activations, CUDA capability below 7.5", int8_below_7_5}, kNoInt8,
              "ValueError"),
      refused({"FP8 activations, CUDA capability below 8.9", too_old_for_fp8}, kNoFp8,
              "ValueError"),
  };
}

void refuse_all(RuleSet& rules, std::string_view reason, std::string_view type) {
  replace_layouts(rules, {refused({}, reason, type)});
}

}  // namespace mxfp4::humming
