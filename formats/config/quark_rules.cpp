// Which configs of AMD Quark mean MXFP4 experts: one config object of a group of modules.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "formats/config/quantization_members.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

// A tensor's specification: what stands for it may be a list of one, or of none.
const Json& only_one(const Json& value) {
  static const Json kNone;
  if (!value.is_array() || value.size() > 1) return value;
  return value.empty() ? kNone : value.front();
}

// Empty when the weight is MXFP4: fp4, in groups of 32, with e8m0 scales.
std::string weight_refusal(const Json& given, const std::string& where) {
  const Json& weight = only_one(given);
  if (!weight.is_object()) return refused_value(where, "", weight, "an object of one fp4 weight");
  return first_refused(
      where, weight,
      {{"dtype", "fp4"}, {"qscheme", "per_group"}, {"group_size", 32}, {"scale_format", "e8m0"}});
}

struct QuarkInput {
  std::string_view dtype;
  bool dynamic;
  std::string_view activation;
};
constexpr std::array kQuarkInputs = {
    QuarkInput{"fp4", true, "mxfp4"},
    QuarkInput{"fp8_e4m3", false, "fp8_per_tensor_static"},
    QuarkInput{"fp6_e3m2", true, "fp6"},
    QuarkInput{"fp6_e2m3", true, "fp6"},
};

// The rule for the modules that match `pattern`; `config` is their object.
ModuleQuantization quark_rule(const Json& config, std::string pattern, const std::string& where) {
  ModuleQuantization rule;
  rule.pattern = std::move(pattern);
  if (!config.is_object()) {
    rule.refusal = refused_value(where, "", config, "an object");
    return rule;
  }
  rule.refusal = weight_refusal(member_of(config, "weight"), where + ".weight");
  for (const std::string_view key : {"output_tensors", "bias"}) {
    const Json& value = member_of(config, key);
    if (rule.refusal.empty() && !is_falsy(value)) {
      rule.refusal = refused_value(where, key, value, "null");
    }
  }
  const Json& input = only_one(member_of(config, "input_tensors"));
  if (!rule.refusal.empty() || input.is_null()) return rule;
  if (input.is_object()) {
    const Json& dtype = member_of(input, "dtype");
    const Json& dynamic = member_of(input, "is_dynamic");
    for (const QuarkInput& legal : kQuarkInputs) {
      if (!is_the_text(dtype, legal.dtype)) continue;
      rule.activation = legal.activation;
      if (is_falsy(dynamic) == legal.dynamic) {
        rule.refusal = refused_value(where, "input_tensors.is_dynamic", dynamic,
                                     fmt::format("{} for {}", legal.dynamic, legal.dtype));
      }
      return rule;
    }
  }
  rule.refusal = refused_value(where, "input_tensors", member_of(config, "input_tensors"),
                               "null, dynamic fp4 or fp6, or static fp8_e4m3 activations");
  return rule;
}

}  // namespace

void read_quark(const QuantizationJson& text, Quantization& method) {
  const Json& root = *text.quantization;
  if (const Json& layers = member_of(root, "layer_quant_config"); layers.is_object()) {
    for (const auto& [pattern, config] : layers.items()) {
      method.rules.push_back(quark_rule(
          config, pattern, fmt::format("{}.layer_quant_config.{}", text.where, shown(pattern))));
    }
  }
  const Json& global = required_object(root, text.where, "global_quant_config");
  method.rules.push_back(quark_rule(global, "*", text.where + ".global_quant_config"));
  method.activation = method.rules.back().activation;
  const Json& excluded = member_of(root, "exclude");
  method.leaves_shared_experts =
      excluded.is_array() && std::ranges::any_of(excluded, [](const Json& name) {
        return name.is_string() &&
               name.get_ref<const std::string&>().find("shared_expert") != std::string::npos;
      });
}

}  // namespace mxfp4
