#include "formats/config/quantization_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/config/quantization_exclusions.hpp"
#include "formats/config/quantization_members.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

// ---- DeepSeek-V4's block FP8, whose experts are FP4 ----

// Ling 3: FP8 for all but the routed experts. Other models do not ask for this key.
bool reads_routed_experts(const QuantizationJson& text, Quantization& method) {
  if (text.model == nullptr || text.model_type != "bailing_moe_v3") return false;
  const Json& routed = member_of(*text.quantization, "routed_experts_quant_method");
  if (routed.is_null()) return false;
  if (!is_the_text(routed, "mxfp4")) {
    throw Error::input(refused_value(text.where, "routed_experts_quant_method", routed, "mxfp4"));
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

// ---- AutoRound (INC) ----

void read_auto_round(const QuantizationJson& text, Quantization&) {
  const Json& root = *text.quantization;
  const Json& type = member_of(root, "data_type");
  if (!type.is_string() || type.get_ref<const std::string&>().find("mx_fp") == std::string::npos) {
    throw Error::input(
        refused_value(text.where, "data_type", type, "mx_fp: other weights are not MXFP4"));
  }
  if (member_of(root, "bits") != 4) {
    throw Error::input(refused_value(text.where, "bits", member_of(root, "bits"), "4"));
  }
  if (member_of(root, "group_size") != 32) {
    throw Error::input(
        refused_value(text.where, "group_size", member_of(root, "group_size"), "32"));
  }
  const Json& packing = member_of(root, "packing_format");
  if (!is_the_text(packing, "auto_round:llm_compressor")) {
    throw Error::input(
        refused_value(text.where, "packing_format", packing, "auto_round:llm_compressor"));
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
      text.model == nullptr ? *text.quantization : member_of(*text.model, "quantization");
  return own.is_object() && own.contains("bits") && own.contains("group_size");
}

void refuse_other_quantization(const QuantizationJson& text) {
  for (const OtherQuantization& other : kOtherQuantizations) {
    const Json& value = member_of(*text.quantization, other.key);
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
  const Json& name = member_of(*text.quantization, "quant_method");
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
    throw Error::input(refused_value(text.where, "quant_method", name, "a string"));
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
