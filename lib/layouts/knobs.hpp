// Layout parameters by name. Where some of them were not given, a variable of the serving process
// counts. The tables of revisions choose rows by knobs; layouts check the rest.
#pragma once

#include <array>
#include <compare>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "lib/core/deployment.hpp"
#include "lib/layouts/output.hpp"

namespace mxfp4 {

// Every knob. One that the chosen layout does not ask for changes nothing, as in the engine.
inline constexpr std::array<std::string_view, 5> kKnobNames = {
    "params_dtype", "marlin_input_dtype", "humming_input_dtype", "cuda_compiler", "aiter_weight"};

// The knob's value, or the first of `allowed`. Throws Error::usage for any other value.
[[nodiscard]] std::string knob_choice(const Target& target, std::string_view name,
                                      std::initializer_list<std::string_view> allowed);

// "bfloat16" or "float16": the engine's params dtype.
[[nodiscard]] std::string params_dtype(const Target& target);
// "none", "fp8" or "int8": knob marlin_input_dtype, else VLLM_MARLIN_INPUT_DTYPE of the target.
[[nodiscard]] std::string marlin_input_dtype(const Target& target);
// "none", "float8e4m3" or "int8": knob humming_input_dtype before vLLM 0.21.0. Throws Error::usage
// when only VLLM_HUMMING_INPUT_QUANT_CONFIG is set, a JSON object that is not read here.
[[nodiscard]] std::string humming_input_dtype(const Target& target);
// The same of releases, which also know "float8e4m3-group32", "-group64", "-group128" (F32
// scales by group; "float8e4m3" has one scale a token, or is MXFP8) and "float4e2m1" (MXFP4).
[[nodiscard]] std::string humming_input_type(const Target& target);

// What layouts may read of a target. Throws Error::usage for values that no layout knows.
[[nodiscard]] LayoutParameters layout_parameters(const Target& target);

// "mxfp4" or "int4": whether the method class requantizes for AITER.
[[nodiscard]] std::string aiter_weight(const Target& target);

struct CompilerVersion {
  unsigned major = 0, minor = 0;
  auto operator<=>(const CompilerVersion&) const = default;
};
// "12.9" -> {12, 9}; empty for other texts.
[[nodiscard]] std::optional<CompilerVersion> compiler_version(std::string_view text);
// The CUDA compiler that humming-kernels finds on the serving machine: knob cuda_compiler. Empty
// where the knob was not given. Throws Error::usage for a text that is not a version.
[[nodiscard]] std::optional<CompilerVersion> cuda_compiler(const Target& target);

// Throws Error::usage for a knob of the target whose value is wrong, also where its layout does not
// ask for the knob.
void check_knobs(const Target& target);

}  // namespace mxfp4
