// Which configs of AMD Quark mean MXFP4 experts: one config object of a group of modules.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "formats/config/quantization_members.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/load/module_rules.hpp"

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
  rule.mxfp4_weights = rule.refusal.empty();
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
      rule.other_static = !legal.dynamic && !(member_of(input, "qscheme") == "per_tensor" &&
                                              member_of(input, "symmetric") == true);
      return rule;
    }
  }
  rule.refusal = refused_value(where, "input_tensors", member_of(config, "input_tensors"),
                               "null, dynamic fp4 or fp6, or static fp8_e4m3 activations");
  return rule;
}

// Whether the config of a group of modules has a list of one where a specification is expected.
bool has_single_list(const Json& config) {
  if (!config.is_object()) return false;
  const auto single = [&](std::string_view key) {
    const Json& value = member_of(config, key);
    return value.is_array() && value.size() <= 1;
  };
  return single("weight") || single("input_tensors");
}

// Throws Error::input where the engine finds no settings for a KV cache that the config says is
// quantized. The list names groups, whose output_tensors are these settings and must be equal.
void check_kv_cache(const QuantizationJson& text, const Json& patterns, const Json& groups) {
  if (!patterns.is_array() || patterns.empty()) return;
  const auto is_named = [&](const std::string& group) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const Json& pattern) {
      return glob_match(pattern.get_ref<const std::string&>(), group);
    });
  };
  const Json* first = nullptr;
  bool equal = true;
  for (const auto& [name, group] : groups.items()) {
    if (!is_named(name)) continue;
    const Json& settings = member_of(group, "output_tensors");
    if (first == nullptr) first = &settings;
    equal = equal && settings == *first;
  }
  if (first != nullptr && !first->is_null() && equal) return;
  throw Error::input(refused_value(text.where, "export.kv_cache_group", patterns,
                                   "names of groups in layer_quant_config that have the same "
                                   "output_tensors"));
}

// Notes the members that are not there and throws Error::input where one has a wrong type.
void check_members(const QuantizationJson& text, Quantization& method) {
  const Json& root = *text.quantization;
  const Json& groups = member_of(root, "layer_quant_config");
  const Json& kv_cache = member_of(required_object(root, text.where, "export"), "kv_cache_group");
  const auto lacks = [&](const Json& value, const char* path) {
    if (value.is_null()) method.lacks.emplace_back(path);
    return value.is_null();
  };
  for (const auto& [value, path] :
       {std::pair{&kv_cache, "export.kv_cache_group"}, {&member_of(root, "exclude"), "exclude"}}) {
    if (lacks(*value, path) || is_list_of_texts(*value)) continue;
    throw Error::input(refused_value(text.where, path, *value, "a list of names"));
  }
  // The engine takes groups that are empty in any way for none.
  if (!groups.is_object() && is_falsy(groups)) method.lacks.emplace_back("layer_quant_config");
  const Json& types = member_of(root, "layer_type_quant_config");
  (void)lacks(types, "layer_type_quant_config");
  for (const auto& [value, key] :
       {std::pair{&groups, "layer_quant_config"}, {&types, "layer_type_quant_config"}}) {
    const bool none = value == &groups ? is_falsy(*value) : value->is_null();
    if (none || value->is_object()) continue;
    throw Error::input(refused_value(text.where, key, *value, "an object"));
  }
  if (!kv_cache.is_null()) {
    check_kv_cache(text, kv_cache, groups.is_object() ? groups : Json::object());
  }
}

}  // namespace

void read_quark(const QuantizationJson& text, Quantization& method) {
  const Json& root = *text.quantization;
  check_members(text, method);
  if (const Json& layers = member_of(root, "layer_quant_config"); layers.is_object()) {
    for (const auto& [pattern, config] : layers.items()) {
      method.rules.push_back(quark_rule(
          config, pattern, fmt::format("{}.layer_quant_config.{}", text.where, shown(pattern))));
      method.single_lists = method.single_lists || has_single_list(config);
    }
  }
  const Json& global = required_object(root, text.where, "global_quant_config");
  method.rules.push_back(quark_rule(global, "*", text.where + ".global_quant_config"));
  method.single_lists = method.single_lists || has_single_list(global);
  method.activation = method.rules.back().activation;
  method.other_static = method.rules.back().other_static;
}

}  // namespace mxfp4
