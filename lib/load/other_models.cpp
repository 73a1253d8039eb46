#include "lib/load/other_models.hpp"

#include <algorithm>
#include <array>

#include "lib/core/expert_name.hpp"

namespace mxfp4 {
namespace {

// Properties of the experts' tensors; one expert that has a property is enough.
struct Seen {
  bool experts = false;
  bool nvfp4 = false;   // a second scale over the blocks' scales
  bool packed = false;  // 4-bit integers in words
  bool order = false;   // GPTQ's order of rows
  bool lookup = false;  // bitsandbytes' tables of values
  bool fp8 = false;     // codes of 8 bits
  bool bytes = false;   // codes or scales in bytes, as MXFP4 has them
  bool floats = false;  // weights as they were trained
};

void look_at(const NamedTensor& tensor, Seen& seen) {
  const std::string_view name = tensor.name;
  const DType dtype = tensor.spec.dtype;
  seen.experts = true;
  seen.nvfp4 |= name.ends_with(".weight_scale_2") || name.ends_with(".weight_global_scale");
  seen.packed |= name.ends_with(".qweight");
  seen.order |= name.ends_with(".g_idx");
  seen.lookup |= name.ends_with(".absmax") || name.ends_with(".quant_map");
  const bool scale = name.find("scale") != std::string_view::npos;
  seen.fp8 |= !scale && (dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2);
  seen.bytes |= dtype == DType::kU8 || dtype == DType::kF8E8M0 || dtype == DType::kF4;
  seen.floats |= !scale && name.find("bias") == std::string_view::npos &&
                 (dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32);
}

}  // namespace

std::optional<std::string_view> describe_other_model(const std::vector<NamedTensor>& tensors) {
  if (tensors.empty()) return std::nullopt;
  Seen seen;
  for (const NamedTensor& tensor : tensors) {
    if (names_expert(tensor.name)) look_at(tensor, seen);
  }
  const auto adapts = [](const NamedTensor& tensor) {
    return tensor.name.find(".lora_") != std::string::npos;
  };
  if (std::ranges::all_of(tensors, adapts)) {
    return "a LoRA adapter, not a model: merge it into its base model, or convert that one";
  }
  if (!seen.experts) {
    return "no tensor of an expert: a dense model; this program repacks the experts of MoE models "
           "only";
  }
  if (seen.nvfp4) {
    return "the experts are quantized as NVFP4; this program repacks MXFP4 experts only";
  }
  if (seen.lookup) {
    return "the experts are quantized as bitsandbytes; this program repacks MXFP4 experts only";
  }
  if (seen.packed) {
    return seen.order ? "the experts are quantized as GPTQ; this program repacks MXFP4 experts only"
                      : "the experts are quantized as AWQ or GPTQ; this program repacks MXFP4 "
                        "experts only";
  }
  if (seen.fp8) {
    return seen.bytes
               ? "the experts are quantized as MXFP8; this program repacks MXFP4 experts only"
               : "the experts are quantized as FP8; this program repacks MXFP4 experts only";
  }
  if (seen.floats && !seen.bytes) {
    return "the experts are not quantized; this program repacks MXFP4 experts only";
  }
  return std::nullopt;
}

bool has_experts(const std::vector<NamedTensor>& tensors) {
  return std::ranges::any_of(tensors,
                             [](const NamedTensor& tensor) { return names_expert(tensor.name); });
}

}  // namespace mxfp4
