// Which config groups of compressed-tensors mean MXFP4 experts, and how they quantize activations.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "formats/config/quantization_members.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

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

// What a group's targets say of routed experts, from nothing to all of them.
enum class Reach : uint8_t { kNone, kPerhaps, kSomeLayers, kAllLayers };

// By the words of a target: "re:.*\\.experts\\.\\d+\\..*" names all. A number may be a layer's, and
// classes such as "Linear" and "RoutedExperts" count where no name does.
Reach reach_of_target(std::string_view target) {
  const auto has = [&](std::string_view word) { return target.find(word) != target.npos; };
  if (has("attn") || has("Attention") || has("shared_expert")) return Reach::kNone;
  if (!has("experts")) return Reach::kPerhaps;
  return std::ranges::any_of(target, is_digit) ? Reach::kSomeLayers : Reach::kAllLayers;
}

Reach reach_of(const Json& group) {
  const Json& targets = member_of(group, "targets");
  Reach reach = Reach::kNone;
  if (!targets.is_array()) return reach;
  for (const Json& target : targets) {
    if (target.is_string()) reach = std::max(reach, reach_of_target(target.get<std::string>()));
  }
  return reach;
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

}  // namespace

// One MXFP4 group is enough; which layers are quantized by it, the tensors say. Where a group names
// the experts of every layer, only those that name some count.
void read_compressed_tensors(const QuantizationJson& text, Quantization& method) {
  const Json& groups = required_object(*text.quantization, text.where, "config_groups");
  const Json& format = member_of(*text.quantization, "format");
  if (format.is_string()) method.format = format.get<std::string>();
  Reach least = Reach::kPerhaps;
  for (const auto& [name, group] : groups.items()) {
    if (!group.is_object()) {
      throw Error::input(refused_value(fmt::format("{}.config_groups.{}", text.where, shown(name)),
                                       "", group, "an object"));
    }
    if (reach_of(group) == Reach::kAllLayers) least = Reach::kSomeLayers;
  }
  std::string first_refusal;
  std::set<std::string> activations;
  for (const auto& [name, group] : groups.items()) {
    if (reach_of(group) < least) continue;
    const std::string where = fmt::format("{}.config_groups.{}", text.where, shown(name));
    const std::string refusal = group_refusal(group, where);
    if (refusal.empty()) activations.insert(group_activation(group, where));
    if (first_refusal.empty()) first_refusal = refusal;
  }
  if (activations.empty()) {
    throw Error::input(first_refusal.empty() ? refused_value(text.where, "config_groups", groups,
                                                             "a group of the experts")
                                             : first_refusal);
  }
  method.activation = activations.size() == 1 ? *activations.begin() : "several";
}

}  // namespace mxfp4
