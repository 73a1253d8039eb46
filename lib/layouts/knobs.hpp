// Layout parameters by name. Where some of them were not given, a variable of the serving process
// counts. The tables of revisions choose rows by knobs; layouts check the rest.
#pragma once

#include <array>
#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lib/core/deployment.hpp"
#include "lib/layouts/output.hpp"

namespace mxfp4 {

inline constexpr std::string_view kHummingVariable = "VLLM_HUMMING_INPUT_QUANT_CONFIG";

struct Knob {
  std::string_view name;
  std::string_view values;      // what it may be; the first is the default
  std::string_view decides;     // in words, with the backends whose layouts ask for it
  std::string_view variable{};  // of the serving process, with the same meaning
};

// Every knob. One that the chosen layout does not ask for changes nothing, as in the engine.
inline constexpr std::array<Knob, 5> kKnobs = {{
    {"params_dtype", "bfloat16|float16",
     "the type of the model's activations and biases: MARLIN, BATCHED_MARLIN, HUMMING"},
    {"marlin_input_dtype", "none|fp8|int8", "the type of activations in the kernel: MARLIN",
     "VLLM_MARLIN_INPUT_DTYPE"},
    {"humming_input_dtype",
     "none|float8e4m3|float8e4m3-group32|float8e4m3-group64|float8e4m3-group128|int8|float4e2m1",
     "the type of activations in the kernel, where the checkpoint does not say it: HUMMING",
     kHummingVariable},
    {"cuda_compiler", "VERSION",
     "the order of weights with 16-bit activations from capability 10.0 on: HUMMING"},
    {"aiter_weight", "mxfp4|int4",
     "whether the method class requantizes SiTU's experts: AITER_MXFP4_BF16 on gfx942"},
}};

// The knob's value, else its variable's, else the default. Throws Error::usage for a value that the
// knob does not have, and where only kHummingVariable is set, a JSON object that is not read here.
[[nodiscard]] std::string knob_value(const Target& target, std::string_view name);

// What layouts may read of a target. Throws Error::usage for values that no layout knows.
[[nodiscard]] LayoutParameters layout_parameters(const Target& target);

// The inverse of parameters_of(), by name; what the layout does not read has its usual value. Throws
// Error::input for a name or value that no layout has.
[[nodiscard]] LayoutParameters parameters_from(const std::map<std::string, std::string>& read);

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
