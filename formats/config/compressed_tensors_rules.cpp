// Which config groups of compressed-tensors mean MXFP4 experts, and how they quantize activations.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/config/quantization_members.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/load/module_rules.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

// A group's weights with the defaults of compressed-tensors 0.17.0 (quantization/quant_args.py).
Json with_defaults(Json weights) {
  const Json& size = member_of(weights, "group_size");
  const bool grouped = size.is_number_integer() && size > 0;
  if (member_of(weights, "strategy").is_null() && grouped) weights["strategy"] = "group";
  if (!weights.contains("symmetric")) weights["symmetric"] = true;
  return weights;
}

// Empty when the group's weights are MXFP4.
std::string group_refusal(const Json& group, const std::string& where) {
  const Json& given = member_of(group, "weights");
  if (!given.is_object()) return refused_value(where, "weights", given, "an object");
  const Json weights = with_defaults(given);
  const std::string at = where + ".weights";
  if (is_the_text(member_of(weights, "strategy"), "tensor_group")) {
    return fmt::format("{}.strategy: tensor_group: NVFP4; {}", at, kOnlyMxfp4);
  }
  std::string refusal = first_refused(at, weights,
                                      {{"num_bits", 4},
                                       {"type", "float"},
                                       {"strategy", "group"},
                                       {"group_size", 32},
                                       {"symmetric", true}});
  if (!refusal.empty()) return refusal;
  const Json& scale = member_of(weights, "scale_dtype");
  if (!scale.is_null() && !is_the_text(scale, "torch.uint8") && !is_the_text(scale, "uint8")) {
    return refused_value(at, "scale_dtype", scale, "torch.uint8");
  }
  return {};
}

// Whether a group's targets have one of these words.
bool targets_have(const Json& group, std::initializer_list<std::string_view> words) {
  const Json& targets = member_of(group, "targets");
  if (!targets.is_array()) return false;
  return std::any_of(targets.begin(), targets.end(), [&](const Json& target) {
    return target.is_string() && std::ranges::any_of(words, [&](std::string_view word) {
             return target.get_ref<const std::string&>().find(word) != std::string::npos;
           });
  });
}

bool targets_experts(const Json& group) { return targets_have(group, {"expert"}); }

// Blocks whose experts a pattern does not name: "re:.*ffn.*(gate|up|down)_proj$".
bool may_hold_experts(const Json& group) {
  return targets_have(group, {"expert", "ffn", "mlp", "moe", "Linear"});
}

bool is_true(const Json& object, std::string_view key, bool otherwise) {
  const Json& value = member_of(object, key);
  return value.is_null() ? otherwise : !is_falsy(value);
}

// Quantization::activation of a group with MXFP4 weights. Defaults are
// from compressed-tensors 0.17.0 (quantization/quant_args.py), the condition is vLLM 0.32.0's
// (compressed_tensors.py, _is_mxfp4_w4a8_fp8). Throws Error::input.
std::string group_activation(const Json& group, const std::string& where) {
  const Json& inputs = member_of(group, "input_activations");
  if (is_falsy(inputs)) return {};
  const std::string at = where + ".input_activations";
  if (!inputs.is_object()) throw Error::input(refused_value(at, "", inputs, "an object"));
  const Json& size = member_of(inputs, "group_size");
  const bool grouped = size.is_number_integer() && size > 0;
  const std::string strategy = lower_text_of(inputs, "strategy", grouped ? "group" : "tensor");
  const Json& bits = member_of(inputs, "num_bits");
  const bool fp8 = lower_text_of(inputs, "type", "int") == "float" && (bits.is_null() || bits == 8);
  if (!fp8 || !is_true(inputs, "dynamic", false) || !is_true(inputs, "symmetric", true) ||
      is_true(member_of(group, "weights"), "dynamic", false)) {
    return {};
  }
  if (strategy == "token") return "fp8_per_token";
  if (strategy != "group") return {};
  if (size == 128) return "fp8_per_block_dynamic";
  return size == 32 ? "fp8_per_group_32" : "fp8_per_group";
}

// One rule for each target of the groups. Names come before the classes of modules, as the engine
// asks them: RoutedExperts holds a layer's experts, "Linear" stands for their parts. Of one target
// in two groups the last counts, at the first one's place.
class TargetRules {
 public:
  void add(const Json& group, const ModuleQuantization& rule) {
    const Json& targets = member_of(group, "targets");
    if (!targets.is_array()) return;
    for (const Json& target : targets) {
      if (target.is_string()) add_target(target.get<std::string>(), rule);
    }
  }

  // Whether all patterns can be matched.
  [[nodiscard]] bool readable() const { return readable_; }

  [[nodiscard]] std::vector<ModuleQuantization> in_order() && {
    for (const char* name : {"RoutedExperts", "Linear"}) {
      if (const auto found = classes_.find(name); found != classes_.end()) {
        named_.push_back(std::move(found->second));
      }
    }
    return std::move(named_);
  }

 private:
  void add_target(const std::string& target, ModuleQuantization rule) {
    rule.pattern = target;
    if (target == "Linear" || target == "RoutedExperts") {
      rule.kind = PatternKind::kAny;
      classes_[target] = std::move(rule);
      return;
    }
    rule.kind = PatternKind::kName;
    if (target.starts_with("re:")) {
      rule.pattern.erase(0, 3);
      rule.kind = PatternKind::kRegex;
      readable_ = readable_ && regex_readable(rule.pattern);
    }
    const auto [place, fresh] = places_.try_emplace(target, named_.size());
    if (fresh) named_.emplace_back();
    named_[place->second] = std::move(rule);
  }

  std::vector<ModuleQuantization> named_;
  std::map<std::string, size_t> places_;  // of a target in named_
  std::map<std::string, ModuleQuantization> classes_;
  bool readable_ = true;
};

}  // namespace

// One MXFP4 group is enough; which layers it holds for, the targets say.
void read_compressed_tensors(const QuantizationJson& text, Quantization& method) {
  const Json& groups = required_object(*text.quantization, text.where, "config_groups");
  const Json& format = member_of(*text.quantization, "format");
  if (format.is_string()) method.format = format.get<std::string>();
  std::string first_refusal;
  bool of_experts = false;            // the refused modules may be experts
  std::set<std::string> activations;  // of the groups whose targets name experts
  std::set<std::string> of_others;
  TargetRules rules;
  for (const auto& [name, group] : groups.items()) {
    const std::string where = fmt::format("{}.config_groups.{}", text.where, shown(name));
    if (!group.is_object()) throw Error::input(refused_value(where, "", group, "an object"));
    const std::string refusal = group_refusal(group, where);
    if (!refusal.empty() && (first_refusal.empty() || (!of_experts && may_hold_experts(group)))) {
      first_refusal = refusal;
      of_experts = may_hold_experts(group);
    }
    ModuleQuantization rule;
    rule.refusal = refusal;
    if (refusal.empty()) {
      rule.activation = group_activation(group, where);
      (targets_experts(group) ? activations : of_others).insert(rule.activation);
    }
    rules.add(group, rule);
  }
  // Kimi-K3's experts are the engine's own MXFP4, whatever the groups say.
  method.named_only = rules.readable() && !text.model_type.starts_with("kimi_k3");
  method.rules = std::move(rules).in_order();
  if (activations.empty()) activations = std::move(of_others);
  if (!activations.empty()) {
    method.activation = activations.size() == 1 ? *activations.begin() : "several";
    return;
  }
  throw Error::input(first_refusal.empty()
                         ? refused_value(text.where, "config_groups", groups, "a group")
                         : first_refusal);
}

}  // namespace mxfp4
