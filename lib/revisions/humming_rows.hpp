// Rows of HUMMING's layouts, which the releases put together for the version of humming-kernels
// that they pin: by the type of activations, the params dtype and the compute capability
// (config/config.py, LayerConfig; kernel/humming.py, check_dtype and check_scale; from 0.1.16 on
// schema/humming.py, is_humming_schema_compatible). What the converter or the kernels of a version
// refuse is refused here, too: nothing could serve from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/layouts/knobs.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4::humming {

// --- activations: the knob's value, which may also be the key of activations that Humming does
// not have

[[nodiscard]] inline std::string type_of(const Target& t) {
  return t.knob("humming_input_dtype", "none");
}
[[nodiscard]] inline bool is_none(const Target& t) { return type_of(t) == "none"; }
[[nodiscard]] inline bool is_fp8(const Target& t) { return type_of(t).starts_with("float8e4m3"); }
// F32 scales in groups of 32, 64 or 128.
[[nodiscard]] inline bool is_fp8_group32(const Target& t) {
  return type_of(t) == "float8e4m3-group32";
}
[[nodiscard]] inline bool is_fp8_group64(const Target& t) {
  return type_of(t) == "float8e4m3-group64";
}
[[nodiscard]] inline bool is_fp8_group128(const Target& t) {
  return type_of(t) == "float8e4m3-group128";
}
[[nodiscard]] inline bool is_fp4(const Target& t) { return type_of(t) == "float4e2m1"; }
[[nodiscard]] inline bool is_int8(const Target& t) { return type_of(t) == "int8"; }
[[nodiscard]] inline bool fp16_params(const Target& t) {
  return knob_value(t, "params_dtype") == "float16";
}

// --- capabilities, by ten: 90 is 9.0. False where the arch is not known

[[nodiscard]] inline bool cuda_known(const Target& t) {
  return cuda_capability(t.arch).has_value();
}
[[nodiscard]] inline bool arch_from(const Target& t, int least) {
  return cuda_capability(t.arch).value_or(0) >= least;
}
[[nodiscard]] inline bool arch_below(const Target& t, int bound) {
  return cuda_capability(t.arch).value_or(bound) < bound;
}
[[nodiscard]] inline bool arch_9(const Target& t) { return arch_from(t, 90) && arch_below(t, 100); }
[[nodiscard]] inline bool arch_12(const Target& t) {
  return arch_from(t, 120) && arch_below(t, 130);
}
// A CUDA compiler from 13.2 (BF16) or 12.7 (FP16) on converts e2m1 to the type of 16-bit
// activations by itself.
[[nodiscard]] bool native(const Target& t);

// --- conditions that several releases share

[[nodiscard]] inline bool int8_below_7_5(const Target& t) {
  return is_int8(t) && arch_below(t, 75);
}
[[nodiscard]] inline bool fp4_below_12(const Target& t) { return is_fp4(t) && arch_below(t, 120); }

inline constexpr TargetCondition kInt8{"INT8 activations",
                                       [](const Target& t) { return is_int8(t) && cuda_known(t); }};
inline constexpr TargetCondition kFp8Below12{
    "FP8 activations, CUDA capability 8.9 to 11.x",
    [](const Target& t) { return is_fp8(t) && arch_below(t, 120); }};
inline constexpr TargetCondition kFp8On12{"FP8 activations, CUDA capability 12.x",
                                          [](const Target& t) { return is_fp8(t) && arch_12(t); }};
inline constexpr TargetCondition kFp4On12{"MXFP4 activations, CUDA capability 12.x",
                                          [](const Target& t) { return is_fp4(t) && arch_12(t); }};
inline constexpr TargetCondition kWgmma{"16-bit activations, CUDA capability 9.x",
                                        [](const Target& t) { return is_none(t) && arch_9(t); }};
inline constexpr TargetCondition kMma{"16-bit activations",
                                      [](const Target& t) { return is_none(t) && cuda_known(t); }};
inline constexpr TargetCondition kNative{
    "16-bit activations, CUDA capability 10.0 or above, cuda_compiler from 13.2 (BF16) or 12.7 "
    "(FP16) on",
    native};

inline constexpr std::string_view kOtherType =
    "Humming has no such activations for MXFP4 weights: loading stops with ValueError";

// --- rows

// The layout depends on a fact that is not known: the engine's process would know it.
[[nodiscard]] LayoutRow asking(TargetCondition when, std::string_view reason);
// `type`: the engine's exception; "": a kernel that nothing stops.
[[nodiscard]] LayoutRow refused(TargetCondition when, std::string_view reason,
                                std::string_view type = "");
[[nodiscard]] LayoutRow packed(TargetCondition when, const Layout& layout);

// What the kernels before 0.1.16 refuse, although the converter lets it through.
[[nodiscard]] std::vector<LayoutRow> refused_by_kernels();
// What the converter refuses from 0.1.16 on: it asks whether its kernels can run.
[[nodiscard]] std::vector<LayoutRow> refused_when_loading();

// Puts these rows in place of HUMMING's, and lets only the variable say the activations.
void replace_rows(RuleSet& rules, std::vector<LayoutRow> rows);
// For a revision that cannot load HUMMING, or of which no bytes are known.
void refuse_all(RuleSet& rules, std::string_view reason, std::string_view type = "");

}  // namespace mxfp4::humming
