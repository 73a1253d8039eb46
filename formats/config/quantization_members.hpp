// Members of a quantization's JSON object, and the messages about them: private to the readers of
// quantization configs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/model_config.hpp"

namespace mxfp4 {

struct QuantizationJson {
  const nlohmann::ordered_json* quantization;  // the quantization_config object, keys in file order
  const nlohmann::ordered_json* model;  // the whole config; null if there is only `quantization`
  std::string_view model_type;
  std::string where;  // key path of the object, "quantization_config"
};

// The end of a message about another quantization.
inline constexpr std::string_view kOnlyMxfp4 = "this program repacks MXFP4 experts only";

// The member, or null when the object has none of this key.
[[nodiscard]] const nlohmann::ordered_json& member_of(const nlohmann::ordered_json& object,
                                                      std::string_view key);
// The same. Throws Error::input unless the member is an object.
[[nodiscard]] const nlohmann::ordered_json& required_object(const nlohmann::ordered_json& parent,
                                                            std::string_view where,
                                                            std::string_view key);

// Whether Python takes the value for false, as the engine asks for members that may be absent.
[[nodiscard]] bool is_falsy(const nlohmann::ordered_json& value);

[[nodiscard]] bool is_the_text(const nlohmann::ordered_json& value, std::string_view text);

// A member's text in lower case, as the package compressed-tensors reads it; `otherwise` if the
// member is not a string.
[[nodiscard]] std::string lower_text_of(const nlohmann::ordered_json& object, std::string_view key,
                                        std::string_view otherwise);

// A value for a message: short, on one line.
[[nodiscard]] std::string said_value(const nlohmann::ordered_json& value);
// "WHERE.KEY: VALUE, expected EXPECTED".
[[nodiscard]] std::string refused_value(std::string_view where, std::string_view key,
                                        const nlohmann::ordered_json& value,
                                        std::string_view expected);

// A key and the value that it must have.
struct WantedMember {
  std::string_view key;
  nlohmann::ordered_json value;
};
// The same of the first member of `object` that has another value; empty if all have theirs.
[[nodiscard]] std::string first_refused(std::string_view where,
                                        const nlohmann::ordered_json& object,
                                        const std::vector<WantedMember>& wanted);

// The methods that have a file each. They throw Error::input.
void read_quark(const QuantizationJson& text, Quantization& method);
void read_compressed_tensors(const QuantizationJson& text, Quantization& method);
// Source: vLLM 0.33.0, quantization/inc/inc.py and config_parser.py.
void read_auto_round(const QuantizationJson& text, Quantization& method);

}  // namespace mxfp4
