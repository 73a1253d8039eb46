#include "formats/config/quantization_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "formats/config/quantization_exclusions.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOnlyMxfp4 = "this program repacks MXFP4 experts only";

// A value for a message: short, on one line.
std::string said(const Json& value) {
  return shown(value.is_string() ? value.get<std::string>()
                                 : value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// The member, or null when it is absent.
const Json& member(const Json& object, std::string_view key) {
  static const Json kNull;
  const auto found = object.find(std::string(key));
  return found == object.end() ? kNull : *found;
}

bool is_text(const Json& value, std::string_view text) {
  return value.is_string() && value.get_ref<const std::string&>() == text;
}

std::string refuse(std::string_view where, std::string_view key, const Json& value,
                   std::string_view expected) {
  return fmt::format("{}{}{}: {}, expected {}", where, key.empty() ? "" : ".", key, said(value),
                     expected);
}

const Json& require_object(const Json& parent, std::string_view where, std::string_view key) {
  const Json& value = member(parent, key);
  if (!value.is_object()) throw Error::input(refuse(where, key, value, "an object"));
  return value;
}

// ---- Quark: one config object of a group of modules ----

// A tensor's specification: what stands for it may be a list of one.
const Json& only_one(const Json& value) {
  return value.is_array() && value.size() == 1 ? value.front() : value;
}

// Empty when the weight is MXFP4: fp4, in groups of 32, with e8m0 scales.
std::string weight_refusal(const Json& given, const std::string& where) {
  const Json& weight = only_one(given);
  if (!weight.is_object()) return refuse(where, "", weight, "an object of one fp4 weight");
  if (!is_text(member(weight, "dtype"), "fp4")) {
    return refuse(where, "dtype", member(weight, "dtype"), "fp4");
  }
  if (!is_text(member(weight, "qscheme"), "per_group")) {
    return refuse(where, "qscheme", member(weight, "qscheme"), "per_group");
  }
  if (member(weight, "group_size") != 32) {
    return refuse(where, "group_size", member(weight, "group_size"), "32");
  }
  if (!is_text(member(weight, "scale_format"), "e8m0")) {
    return refuse(where, "scale_format", member(weight, "scale_format"), "e8m0");
  }
  return {};
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
    rule.refusal = refuse(where, "", config, "an object");
    return rule;
  }
  rule.refusal = weight_refusal(member(config, "weight"), where + ".weight");
  for (const std::string_view key : {"output_tensors", "bias"}) {
    const Json& value = member(config, key);
    if (rule.refusal.empty() && !value.is_null()) {
      rule.refusal = refuse(where, key, value, "null");
    }
  }
  const Json& input = only_one(member(config, "input_tensors"));
  if (!rule.refusal.empty() || input.is_null()) return rule;
  if (input.is_object()) {
    const Json& dtype = member(input, "dtype");
    const Json& dynamic = member(input, "is_dynamic");
    for (const QuarkInput& legal : kQuarkInputs) {
      if (!is_text(dtype, legal.dtype)) continue;
      rule.activation = legal.activation;
      if (dynamic != legal.dynamic) {
        rule.refusal = refuse(where, "input_tensors.is_dynamic", dynamic,
                              fmt::format("{} for {}", legal.dynamic, legal.dtype));
      }
      return rule;
    }
  }
  rule.refusal = refuse(where, "input_tensors", member(config, "input_tensors"),
                        "null, dynamic fp4 or fp6, or static fp8_e4m3 activations");
  return rule;
}

// Whether the config of a group of modules has a list of one where a specification is expected.
bool has_single_list(const Json& config) {
  if (!config.is_object()) return false;
  const auto single = [&](std::string_view key) {
    const Json& value = member(config, key);
    return value.is_array() && value.size() == 1;
  };
  return single("weight") || single("input_tensors");
}

void read_quark(const QuantizationJson& text, Quantization& method) {
  const Json& root = *text.quantization;
  (void)require_object(root, text.where, "export");
  if (const Json& layers = member(root, "layer_quant_config"); layers.is_object()) {
    for (const auto& [pattern, config] : layers.items()) {
      method.rules.push_back(quark_rule(
          config, pattern, fmt::format("{}.layer_quant_config.{}", text.where, shown(pattern))));
      method.single_lists = method.single_lists || has_single_list(config);
    }
  }
  const Json& global = require_object(root, text.where, "global_quant_config");
  method.rules.push_back(quark_rule(global, "*", text.where + ".global_quant_config"));
  method.single_lists = method.single_lists || has_single_list(global);
  method.activation = method.rules.back().activation;
}

// ---- compressed-tensors ----

// Empty when the group's weights are MXFP4.
std::string group_refusal(const Json& group, const std::string& where) {
  const Json& weights = member(group, "weights");
  if (!weights.is_object()) return refuse(where, "weights", weights, "an object");
  const std::string at = where + ".weights";
  if (is_text(member(weights, "strategy"), "tensor_group")) {
    return fmt::format("{}.strategy: tensor_group: NVFP4; {}", at, kOnlyMxfp4);
  }
  if (member(weights, "num_bits") != 4) {
    return refuse(at, "num_bits", member(weights, "num_bits"), "4");
  }
  if (!is_text(member(weights, "type"), "float")) {
    return refuse(at, "type", member(weights, "type"), "float");
  }
  if (!is_text(member(weights, "strategy"), "group")) {
    return refuse(at, "strategy", member(weights, "strategy"), "group");
  }
  if (member(weights, "group_size") != 32) {
    return refuse(at, "group_size", member(weights, "group_size"), "32");
  }
  if (member(weights, "symmetric") != true) {
    return refuse(at, "symmetric", member(weights, "symmetric"), "true");
  }
  const Json& scale = member(weights, "scale_dtype");
  if (!scale.is_null() && !is_text(scale, "torch.uint8")) {
    return refuse(at, "scale_dtype", scale, "torch.uint8");
  }
  return {};
}

bool targets_experts(const Json& group) {
  const Json& targets = member(group, "targets");
  if (!targets.is_array()) return false;
  return std::any_of(targets.begin(), targets.end(), [](const Json& target) {
    return target.is_string() &&
           target.get_ref<const std::string&>().find("expert") != std::string::npos;
  });
}

// A member's text in lower case, as the package compressed-tensors reads it; `otherwise` if the
// member is not a string.
std::string lower_text(const Json& object, std::string_view key, std::string_view otherwise) {
  const Json& value = member(object, key);
  std::string text(value.is_string() ? value.get_ref<const std::string&>() : otherwise);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool is_true(const Json& object, std::string_view key, bool otherwise) {
  const Json& value = member(object, key);
  return value.is_null() ? otherwise : value == true;
}

// Quantization::activation of a group with MXFP4 weights. Defaults and refusals are those of
// compressed-tensors 0.17.0 (quantization/quant_args.py), the condition is vLLM 0.32.0's
// (compressed_tensors.py, _is_mxfp4_w4a8_fp8). Throws Error::input.
std::string group_activation(const Json& group, const std::string& where) {
  const Json& inputs = member(group, "input_activations");
  if (inputs.is_null() || inputs.empty()) return {};
  const std::string at = where + ".input_activations";
  if (!inputs.is_object()) throw Error::input(refuse(at, "", inputs, "an object"));
  const Json& size = member(inputs, "group_size");
  const bool grouped = size.is_number_integer() && size > 0;
  const std::string strategy = lower_text(inputs, "strategy", grouped ? "group" : "tensor");
  const Json& dynamic = member(inputs, "dynamic");
  const bool local = dynamic.is_string() && lower_text(inputs, "dynamic", "") == "local";
  if (local ? strategy != "tensor_group" : !dynamic.is_null() && !dynamic.is_boolean()) {
    throw Error::input(refuse(at, "dynamic", dynamic, "true or false"));
  }
  if (strategy == "token" && !local && !is_true(inputs, "dynamic", false)) {
    throw Error::input(refuse(at, "dynamic", dynamic, "true for strategy token"));
  }
  if (grouped != (strategy == "group" || strategy == "tensor_group")) {
    throw Error::input(refuse(at, "group_size", size,
                              grouped ? "none for strategy " + strategy : "a size above 0"));
  }
  const Json& bits = member(inputs, "num_bits");
  const bool fp8 = lower_text(inputs, "type", "int") == "float" && (bits.is_null() || bits == 8);
  if (!fp8 || !is_true(inputs, "dynamic", false) || !is_true(inputs, "symmetric", true) ||
      is_true(member(group, "weights"), "dynamic", false)) {
    return {};
  }
  if (strategy == "token") return "fp8_per_token";
  if (strategy != "group") return {};
  if (size == 128) return "fp8_per_block_dynamic";
  return size == 32 ? "fp8_per_group_32" : "fp8_per_group";
}

// One rule for each target of a group. Names come before the classes of modules, as the engine asks
// them: "Linear" stands for the experts, too.
void add_rules(const Json& group, ModuleQuantization rule, std::vector<ModuleQuantization>& named,
               std::vector<ModuleQuantization>& classes) {
  const Json& targets = member(group, "targets");
  if (!targets.is_array()) return;
  for (const Json& target : targets) {
    if (!target.is_string()) continue;
    rule.pattern = target.get<std::string>();
    rule.kind = PatternKind::kName;
    if (rule.pattern.starts_with("re:")) {
      rule.pattern.erase(0, 3);
      rule.kind = PatternKind::kRegex;
    }
    const bool every = rule.pattern == "Linear";
    if (every) rule.kind = PatternKind::kAny;
    (every ? classes : named).push_back(rule);
  }
}

// One MXFP4 group is enough; which layers it holds for, the targets say.
void read_compressed_tensors(const QuantizationJson& text, Quantization& method) {
  const Json& groups = require_object(*text.quantization, text.where, "config_groups");
  const Json& format = member(*text.quantization, "format");
  if (format.is_string()) method.format = format.get<std::string>();
  std::string first_refusal;
  std::set<std::string> activations;  // of the groups whose targets name experts
  std::set<std::string> of_others;
  std::vector<ModuleQuantization> classes;
  for (const auto& [name, group] : groups.items()) {
    const std::string where = fmt::format("{}.config_groups.{}", text.where, shown(name));
    if (!group.is_object()) throw Error::input(refuse(where, "", group, "an object"));
    const std::string refusal = group_refusal(group, where);
    if (first_refusal.empty()) first_refusal = refusal;
    ModuleQuantization rule;
    rule.refusal = refusal;
    if (refusal.empty()) {
      rule.activation = group_activation(group, where);
      (targets_experts(group) ? activations : of_others).insert(rule.activation);
    }
    add_rules(group, std::move(rule), method.rules, classes);
  }
  method.rules.insert(method.rules.end(), classes.begin(), classes.end());
  if (activations.empty()) activations = std::move(of_others);
  if (!activations.empty()) {
    method.activation = activations.size() == 1 ? *activations.begin() : "several";
    return;
  }
  throw Error::input(first_refusal.empty() ? refuse(text.where, "config_groups", groups, "a group")
                                           : first_refusal);
}

// ---- DeepSeek-V4's block FP8, whose experts are FP4 ----

// Ling 3: FP8 for all but the routed experts. Other models do not ask for this key.
bool reads_routed_experts(const QuantizationJson& text, Quantization& method) {
  if (text.model == nullptr || text.model_type != "bailing_moe_v3") return false;
  const Json& routed = member(*text.quantization, "routed_experts_quant_method");
  if (routed.is_null()) return false;
  if (!is_text(routed, "mxfp4")) {
    throw Error::input(refuse(text.where, "routed_experts_quant_method", routed, "mxfp4"));
  }
  method.routed_experts = "mxfp4";
  return true;
}

void read_fp8(const QuantizationJson& text, Quantization& method) {
  if (reads_routed_experts(text, method)) return;
  constexpr std::array<std::string_view, 4> kTypes = {"deepseek_v4", "deepseek_v4_text",
                                                      "deepseek_v41", "deepseek_v41_text"};
  if (text.model != nullptr && std::ranges::find(kTypes, text.model_type) == kTypes.end()) {
    throw Error::input(
        fmt::format("{}.quant_method: {}: a model of type {} is quantized as FP8; {}", text.where,
                    method.name, shown(text.model_type), kOnlyMxfp4));
  }
  Json said_dtype = member(*text.quantization, "expert_dtype");
  if (text.model != nullptr) {
    const Json& nested = member(*text.model, "text_config");
    if (nested.is_object() && nested.contains("expert_dtype")) said_dtype = nested["expert_dtype"];
    if (text.model->contains("expert_dtype")) said_dtype = (*text.model)["expert_dtype"];
  }
  if (!said_dtype.is_null() && !is_text(said_dtype, "fp4")) {
    throw Error::input(refuse("expert_dtype", "", said_dtype, "fp4: other experts are not MXFP4"));
  }
  const Json& algorithm = member(*text.quantization, "moe_quant_algo");
  if (lower_text(*text.quantization, "moe_quant_algo", "") == "nvfp4") {
    throw Error::input(fmt::format("{}.moe_quant_algo: {}: the experts are NVFP4; {}", text.where,
                                   said(algorithm), kOnlyMxfp4));
  }
  method.expert_dtype = "fp4";
}

// ---- AutoRound (INC) ----

void read_auto_round(const QuantizationJson& text, Quantization&) {
  const Json& root = *text.quantization;
  const Json& type = member(root, "data_type");
  if (!type.is_string() || type.get_ref<const std::string&>().find("mx_fp") == std::string::npos) {
    throw Error::input(refuse(text.where, "data_type", type, "mx_fp: other weights are not MXFP4"));
  }
  if (member(root, "bits") != 4) {
    throw Error::input(refuse(text.where, "bits", member(root, "bits"), "4"));
  }
  if (member(root, "group_size") != 32) {
    throw Error::input(refuse(text.where, "group_size", member(root, "group_size"), "32"));
  }
  const Json& packing = member(root, "packing_format");
  if (!is_text(packing, "auto_round:llm_compressor")) {
    throw Error::input(refuse(text.where, "packing_format", packing, "auto_round:llm_compressor"));
  }
}

// ---- Other quantizations, by their usual names ----

struct OtherQuantization {
  std::string_view key;    // of the quantization's object
  std::string_view value;  // compared without regard to case
  std::string_view name;
};
// The first row that matches names the quantization.
constexpr std::array kOtherQuantizations = {
    OtherQuantization{"quant_algo", "nvfp4", "NVFP4"},
    OtherQuantization{"quant_algo", "nvfp4_awq", "NVFP4"},
    OtherQuantization{"quant_algo", "mxfp8", "MXFP8"},
    OtherQuantization{"quant_algo", "fp8", "FP8"},
    OtherQuantization{"format", "nvfp4-pack-quantized", "NVFP4"},
    OtherQuantization{"format", "mxfp8-quantized", "MXFP8"},
    OtherQuantization{"format", "float-quantized", "FP8"},
    OtherQuantization{"format", "pack-quantized", "packed integers, as GPTQ and AWQ give"},
    OtherQuantization{"format", "int-quantized", "INT8"},
    OtherQuantization{"quant_algo", "mixed_precision", "ModelOpt's mix of FP8, NVFP4 and MXFP8"},
    OtherQuantization{"quant_algo", "w4a16_awq", "AWQ"},
    OtherQuantization{"quant_method", "modelopt_fp4", "NVFP4"},
    OtherQuantization{"quant_method", "modelopt_mxfp8", "MXFP8"},
    OtherQuantization{"quant_method", "mxfp8", "MXFP8"},
    OtherQuantization{"quant_method", "fbgemm_fp8", "FP8"},
    OtherQuantization{"quant_method", "awq", "AWQ"},
    OtherQuantization{"quant_method", "awq_marlin", "AWQ"},
    OtherQuantization{"quant_method", "gptq", "GPTQ"},
    OtherQuantization{"quant_method", "gptq_marlin", "GPTQ"},
    OtherQuantization{"quant_method", "bitsandbytes", "bitsandbytes"},
};

bool equal_but_for_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

// MLX writes its settings under `quantization`, and again where others look for them.
bool is_mlx(const QuantizationJson& text) {
  const Json& own =
      text.model == nullptr ? *text.quantization : member(*text.model, "quantization");
  return own.is_object() && own.contains("bits") && own.contains("group_size");
}

void refuse_other_quantization(const QuantizationJson& text) {
  for (const OtherQuantization& other : kOtherQuantizations) {
    const Json& value = member(*text.quantization, other.key);
    if (!value.is_string()) continue;
    const auto& said = value.get_ref<const std::string&>();
    if (!equal_but_for_case(said, other.value)) continue;
    throw Error::input(fmt::format("{}.{}: {}: the model is quantized as {}; {}", text.where,
                                   other.key, shown(said), other.name, kOnlyMxfp4));
  }
}

void read_mxfp4(const QuantizationJson&, Quantization&) {}

struct MethodRow {
  std::string_view name;
  void (*read)(const QuantizationJson&, Quantization&);
};
constexpr std::array kMethods = {
    MethodRow{"mxfp4", read_mxfp4},
    MethodRow{"gpt_oss_mxfp4", read_mxfp4},
    MethodRow{"fp8", read_fp8},
    MethodRow{"deepseek_v4_fp8", read_fp8},
    MethodRow{"quark", read_quark},
    MethodRow{"compressed-tensors", read_compressed_tensors},
    MethodRow{"auto-round", read_auto_round},
    MethodRow{"inc", read_auto_round},
};

}  // namespace

Quantization read_quantization(const QuantizationJson& text) {
  const Json& name = member(*text.quantization, "quant_method");
  Quantization method;
  if (name.is_null() && is_mlx(text)) {
    throw Error::input(text.where +
                       ": MLX's format, which names no quant_method; this program reads what vLLM "
                       "loads")
        .hint("convert the checkpoint that it was made from");
  }
  if (name.is_null() && text.where == "compression_config") {
    method.name = "compressed-tensors";  // older exports leave it out there
  } else if (name.is_string()) {
    method.name = name.get<std::string>();
  } else {
    throw Error::input(refuse(text.where, "quant_method", name, "a string"));
  }
  refuse_other_quantization(text);
  for (const MethodRow& row : kMethods) {
    if (row.name != method.name) continue;
    row.read(text, method);
    method.excluded = read_exclusions(*text.quantization);
    return method;
  }
  throw Error::input(
      fmt::format("{}.quant_method: {}: not a quantization that this program knows; {}", text.where,
                  shown(method.name), kOnlyMxfp4));
}

}  // namespace mxfp4
