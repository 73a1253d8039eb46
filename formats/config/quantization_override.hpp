// The user's override object, --quantization-config, as the engine accepts or refuses it (vLLM
// a2c8fc6657, vllm/config/quantization.py): {"linear": SPEC, "moe": SPEC, "ignore": [names]} with
// SPEC = {"weight": name, "activation": name} or a string that sets the weight only. The oracle
// uses only moe.activation, and for one method class moe.weight.
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

// `json` is the object's text; "null" and an empty text mean that there is none. `quantization` is
// the engine's --quantization, empty if not given: a shorthand there fills the members that the
// object does not set. The result is empty without a configuration. Throws Error::input for
// malformed JSON, and for what the engine refuses, then with the reference's exception type and the
// message "<key>: <value>: <the engine's message>".
[[nodiscard]] std::optional<QuantizationOverride> parse_quantization_config(
    const RuleSet& rules, std::string_view json, std::string_view quantization = {});

// The text that the flag's value stands for: the value itself if it starts with '{' or is "null",
// white space aside; else the content of the file of that name. Throws Error::input if the file
// cannot be read or is larger than 1 MiB.
[[nodiscard]] std::string quantization_config_text(std::string_view flag);

// Reads and parses the flag's value. Errors begin with the flag, then the file's name unless the
// text is inline.
[[nodiscard]] std::optional<QuantizationOverride> read_quantization_config(const RuleSet& rules,
                                                                           std::string_view flag);

}  // namespace mxfp4
