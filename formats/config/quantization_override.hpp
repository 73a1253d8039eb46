// The user's override object of --quantization-config, as the engine accepts or refuses it (vLLM
// a2c8fc6657, vllm/config/quantization.py): {"linear": SPEC, "moe": SPEC, "ignore": [names]} with
// SPEC = {"weight": name, "activation": name} or a string that sets the weight only. The oracle
// reads moe.activation alone, and one method class moe.weight.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

struct OverrideSpec {
  std::optional<std::string> weight;
  std::optional<std::string> activation;
  friend bool operator==(const OverrideSpec&, const OverrideSpec&) = default;
};

struct QuantizationOverride {
  std::optional<OverrideSpec> linear;
  std::optional<OverrideSpec> moe;
  std::vector<std::string> ignore;

  [[nodiscard]] std::optional<std::string> moe_activation() const {
    return moe ? moe->activation : std::nullopt;
  }
  [[nodiscard]] std::optional<std::string> moe_weight() const {
    return moe ? moe->weight : std::nullopt;
  }
};

// `json` is the object's text; "null" or empty text mean absent. `quantization` is the engine's
// --quantization, empty when not given: a shorthand there fills the members that the object does
// not set. Empty result: no configuration at all. Throws Error::input for malformed JSON, and, with
// the reference's exception type, for what the engine refuses: "<key>: <value>: <its message>".
[[nodiscard]] std::optional<QuantizationOverride> parse_quantization_config(
    const RuleSet& rules, std::string_view json, std::string_view quantization = {});

// The text behind the flag's value: inline when it starts with '{' or is "null", else the file of
// that name. Throws Error::input when the file cannot be read or is larger than 1 MiB.
[[nodiscard]] std::string quantization_config_text(std::string_view flag);

// Both for the flag's value; errors begin with the file, or the flag for inline text.
[[nodiscard]] std::optional<QuantizationOverride> read_quantization_config(const RuleSet& rules,
                                                                           std::string_view flag);

}  // namespace mxfp4
