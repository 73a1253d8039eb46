#include "formats/config/quantization_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kRoutedMethod = "routed_experts_quant_method";
constexpr std::string_view kStoreDtype = "store_dtype";

// The model class decides: other models that say bailing_hybrid do not ask for Ling 3's key.
bool is_ling_3(const QuantizationJson& text) {
  if (text.model == nullptr) return false;
  if (text.model_type.starts_with("bailing_moe_v3")) return true;
  const Json& names = member_of(*text.model, "architectures");
  return names.is_array() && std::any_of(names.begin(), names.end(), [](const Json& name) {
           return name.is_string() &&
                  name.get_ref<const std::string&>().starts_with("BailingMoeV3");
         });
}

// FP8 for all but the routed experts: Ling 3's own key, or the one that the engine's common FP8
// config reads for every model. DeepSeek's own config does not ask for it.
bool reads_routed_experts(const QuantizationJson& text, Quantization& method) {
  // The model class asks for its key only where FP8 is in blocks.
  if (is_ling_3(text) && !member_of(*text.quantization, "weight_block_size").is_null()) {
    const Json& routed = member_of(*text.quantization, kRoutedMethod);
    if (is_the_text(routed, "mxfp4")) method.routed_experts = kRoutedMethod;
    if (!routed.is_null() && method.routed_experts.empty()) {
      throw Error::input(refused_value(text.where, kRoutedMethod, routed, "mxfp4"));
    }
  }
  if (method.routed_experts.empty() && method.name == "fp8" &&
      is_the_text(member_of(*text.quantization, kStoreDtype), "mxfp4")) {
    method.routed_experts = kStoreDtype;
  }
  return !method.routed_experts.empty();
}

void read_fp8(const QuantizationJson& text, Quantization& method) {
  constexpr std::array<std::string_view, 4> kTypes = {"deepseek_v4", "deepseek_v4_text",
                                                      "deepseek_v41", "deepseek_v41_text"};
  if (text.model != nullptr && std::ranges::find(kTypes, text.model_type) == kTypes.end()) {
    if (reads_routed_experts(text, method)) return;
    throw Error::input(
        fmt::format("{}.quant_method: {}: a model of type {} is quantized as FP8; {}", text.where,
                    method.name, shown(text.model_type), kOnlyMxfp4));
  }
  Json said_dtype = member_of(*text.quantization, "expert_dtype");
  if (text.model != nullptr) {
    const Json& nested = member_of(*text.model, "text_config");
    if (nested.is_object() && nested.contains("expert_dtype")) said_dtype = nested["expert_dtype"];
    if (text.model->contains("expert_dtype")) said_dtype = (*text.model)["expert_dtype"];
  }
  if (!said_dtype.is_null() && !is_the_text(said_dtype, "fp4")) {
    throw Error::input(
        refused_value("expert_dtype", "", said_dtype, "fp4: other experts are not MXFP4"));
  }
  const Json& algorithm = member_of(*text.quantization, "moe_quant_algo");
  if (lower_text_of(*text.quantization, "moe_quant_algo", "") == "nvfp4") {
    throw Error::input(fmt::format("{}.moe_quant_algo: {}: the experts are NVFP4; {}", text.where,
                                   said_value(algorithm), kOnlyMxfp4));
  }
  method.expert_dtype = "fp4";
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
  const Json& name = member_of(*text.quantization, "quant_method");
  Quantization method;
  if (name.is_null() && text.where == "compression_config") {
    method.name = "compressed-tensors";  // older exports leave it out there
  } else if (name.is_string()) {
    method.name = name.get<std::string>();
  } else {
    throw Error::input(
        refused_value(text.where, "quant_method", name, "a name; MLX's format has none"));
  }
  for (const MethodRow& row : kMethods) {
    if (row.name != method.name) continue;
    row.read(text, method);
    return method;
  }
  throw Error::input(
      fmt::format("{}.quant_method: {}: not a quantization that this program knows; {}", text.where,
                  shown(method.name), kOnlyMxfp4));
}

}  // namespace mxfp4
