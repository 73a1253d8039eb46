// The method classes of SGLang by checkpoint, what stops them after the choice, and the names of
// their parameters: srt/layers/quantization/mxfp4.py, fp8.py, compressed_tensors/, quark/;
// srt/models/gpt_oss.py (_load_mxfp4_experts_weights);
// srt/layers/quantization/marlin_utils.py (check_moe_marlin_supports_layer).
#include <cstdint>
#include <vector>

#include "lib/core/model_config.hpp"
#include "lib/revisions/sglang/tables.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4::sglang {
namespace {

using enum Backend;

bool method_named(const ModelConfig& config, std::string_view name) {
  return config.quantization && config.quantization->name == name;
}

bool loads_gpt_oss(const ModelConfig& config) {
  return config.model_type == "gpt_oss" || config.original_gpt_oss;
}

bool has_fp4_experts(const ModelConfig& config) {
  const bool fp8 = method_named(config, "fp8") || method_named(config, "deepseek_v4_fp8");
  return fp8 && config.model_type.starts_with("deepseek_v4") &&
         (config.quantization->expert_dtype.empty() || config.quantization->expert_dtype == "fp4");
}

CallerRow gpt_oss_caller() {
  return {.text = kGptOssText,
          .holds =
              [](const ModelConfig& c) {
                return (method_named(c, "mxfp4") || method_named(c, "gpt_oss_mxfp4")) &&
                       loads_gpt_oss(c);
              },
          .method = "Mxfp4MoEMethod",
          .direct = gpt_oss_paths(),
          .minimum_capability = 80};
}

CallerRow fp4_experts_caller() {
  return {.text = kFp4ExpertsText,
          .holds = has_fp4_experts,
          .method = "Fp8MoEMethod",
          .selector = Selector::kDeepseekV4,
          .family = Family::kGeneric,
          .direct = fp4_experts_paths(),
          .minimum_capability = 80};
}

CallerRow quark_caller() {
  return {.text = kQuarkText,
          .holds = [](const ModelConfig& c) { return method_named(c, "quark"); },
          .method = "QuarkW4A4MXFp4MoE",
          .family = Family::kGeneric,
          .direct = quark_paths()};
}

// Marlin takes whole groups and tiles of the sizes before they are rounded.
bool marlin_refuses(const LoadFacts& f) {
  const Deployment& d = f.question.deployment;
  if (f.decision.backend != MARLIN || !d.hidden_size || !d.intermediate_size) return false;
  return *d.hidden_size % 64 != 0 || *d.intermediate_size / f.question.parallel.tp_size % 32 != 0;
}

bool is_cutlass(const LoadFacts& f) {
  return f.decision.backend == FLASHINFER_CUTLASS_MXFP4_BF16 ||
         f.decision.backend == FLASHINFER_CUTLASS_MXFP4_MXFP8;
}

}  // namespace

std::vector<CallerRow> callers() {
  return {gpt_oss_caller(), fp4_experts_caller(), quark_caller()};
}

CallerRow compressed_tensors_caller(bool kimi) {
  CallerRow row{.text = kimi ? "compressed-tensors mxfp4-pack-quantized, model_type kimi_k3"
                             : "compressed-tensors, 4-bit float, group 32, symmetric",
                .holds = [](const ModelConfig& c) { return method_named(c, "compressed-tensors"); },
                .method = "Mxfp4MoEMethod",
                .family = Family::kGeneric,
                .direct = compressed_tensors_paths(kimi),
                .minimum_capability = 80};
  if (kimi) {
    row.holds = [](const ModelConfig& c) {
      return method_named(c, "compressed-tensors") && c.model_type.starts_with("kimi_k3");
    };
  }
  return row;
}

std::vector<LoadNoteRow> load_notes() {
  using Facts = LoadFacts;
  return {
      {"capability", below_minimum_capability,
       "the checkpoint's quantization needs capability {minimum_capability} or more: SGLang stops "
       "at its start",
       "", /*stops=*/true},
      {"slices",
       [](const Facts& f) {
         if (f.family != Family::kGptOss || f.caller == nullptr) return false;
         const auto rows = gpt_oss_rows(f.question);
         const bool unpadded = is_cutlass(f) || f.decision.backend == DEEPGEMM_MXFP4;
         return rows && unpadded && rows->loaded > rows->buffer;
       },
       "SGLang stops with RuntimeError while it loads: over {tp_size} tensor parallel ranks its "
       "loader cuts more rows for a rank than the buffers of this path hold (models/gpt_oss.py "
       "cuts whole blocks of 32, and this path pads no buffer before it loads)",
       "", /*stops=*/true},
      {"Marlin", marlin_refuses,
       "SGLang stops with RuntimeError: Current MXFP4 MoE layer is not supported by Marlin. Over "
       "{tp_size} tensor parallel ranks the hidden size is not a multiple of 64, or a "
       "rank's intermediate size not a multiple of 32",
       "", /*stops=*/true},
      {"CUTLASS sizes",
       [](const Facts& f) {
         const Deployment& d = f.question.deployment;
         if (f.caller == nullptr || f.caller->method != "Fp8MoEMethod" || !is_cutlass(f))
           return false;
         const int64_t inter = d.intermediate_size.value_or(0) / f.question.parallel.tp_size;
         return d.hidden_size.value_or(0) % 128 != 0 || inter % 128 != 0;
       },
       "SGLang stops with ValueError: Mxfp4FlashinferCutlassMoEMethod requires hidden_size and "
       "intermediate_size_per_partition to be multiples of 128",
       "", /*stops=*/true},
      {"triton experts",
       [](const Facts& f) { return f.decision.backend == TRITON && f.question.parallel.use_ep; },
       "SGLang stops with AssertionError at the first request: Expert parallel is not supported "
       "when using triton kernels",
       "", /*stops=*/true},
  };
}

std::vector<ParameterNameRow> parameter_names() {
  return {
      {"Mxfp4MoEMethod", {}, "w13_bias", "w13_weight_bias"},
      {"Mxfp4MoEMethod", {}, "w2_bias", "w2_weight_bias"},
      // Marlin's preparation leaves scales under the plain name.
      {"Fp8MoEMethod", MARLIN, "w13_weight_scale", "w13_weight_scale_inv"},
      {"Fp8MoEMethod", MARLIN, "w2_weight_scale", "w2_weight_scale_inv"},
  };
}

}  // namespace mxfp4::sglang
