// The user's override object, --quantization-config (vLLM a2c8fc6657, vllm/config/quantization.py):
// {"linear": SPEC, "moe": SPEC, "ignore": [names]} with SPEC = {"weight": name, "activation": name}
// or a string that sets the weight only. What it says of experts is read; the rest the engine checks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mxfp4 {

// The names that `moe` gives.
struct QuantizationOverride {
  std::optional<std::string> weight;
  std::optional<std::string> activation;
};

// `json` is the object's text, or "null". Throws Error::input for malformed JSON, for keys that the
// engine does not have, and for a name that is not a string.
[[nodiscard]] QuantizationOverride parse_quantization_config(std::string_view json);

// Reads the flag's value: the object's text if it starts with '{' or is "null", white space aside;
// else the file of that name. Errors begin with the flag, then the file's name unless the text is
// inline. Throws Error::input if the file cannot be read or is larger than 1 MiB.
[[nodiscard]] QuantizationOverride read_quantization_config(std::string_view flag);

}  // namespace mxfp4
