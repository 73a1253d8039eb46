// vLLM 0.32.0, second part: what serves checkpoints and models, and Humming's layouts. v0_32_0.cpp
// calls these functions.
#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/core/error.hpp"
#include "lib/core/model_config.hpp"
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/humming_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/direct_rows.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/humming_rows.hpp"
#include "lib/revisions/releases/v0_32_0.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

// How a compressed-tensors config says that activations are quantized; empty for other configs.
// Throws Error::unsupported where its groups disagree.
std::string_view activation_of(const ModelConfig& config) {
  if (!config.quantization || config.quantization->name != "compressed-tensors") return {};
  if (config.quantization->activation == "several") {
    throw Error::unsupported(
        "the groups of quantization_config disagree about activations, and no group's targets name "
        "the experts: this release serves dynamic FP8 ones by another method");
  }
  return config.quantization->activation;
}

// compressed_tensors_moe.py: dynamic FP8 activations in the checkpoint take it to a method that
// derives from the generic one and differs only in its name for the tensors. Humming's converter
// gets the activations; the selector does not.
void serve_fp8_activations(RuleSet& rules) {
  CallerRow row = edit::row(rules.callers, "quant_method mxfp4, any other model_type");
  row.method = "CompressedTensorsW4A8Mxfp4MoEMethod";
  row.minimum_capability = 70;
  const auto add = [&](std::string_view text, auto holds, std::string_view key,
                       std::string_view dtype) {
    row.text = text;
    row.holds = holds;
    row.model_activation = key;
    row.input_dtype = dtype;
    edit::add_before(rules.callers, "compressed-tensors, 4-bit float, group 32, symmetric", row);
  };
  add(
      "compressed-tensors, MXFP4 with dynamic FP8 activations by token",
      [](const ModelConfig& c) { return activation_of(c) == "fp8_per_token"; }, "fp8_per_token",
      "float8e4m3");
  add(
      "compressed-tensors, MXFP4 with dynamic FP8 activations in groups of 128",
      [](const ModelConfig& c) { return activation_of(c) == "fp8_per_block_dynamic"; },
      "fp8_per_block_dynamic", "float8e4m3-group128");
  add(
      "compressed-tensors, MXFP4 with dynamic FP8 activations in groups of 32",
      [](const ModelConfig& c) { return activation_of(c) == "fp8_per_group_32"; }, "",
      "float8e4m3-group32");
  add(
      "compressed-tensors, MXFP4 with dynamic FP8 activations in other groups",
      [](const ModelConfig& c) { return activation_of(c) == "fp8_per_group"; }, "",
      "fp8_per_group");
}

// quantization/mxfp4.py, _use_k3_situ_aiter and _use_k3_situ_int4_gfx942: the method class serves
// Kimi-K3 on ROCm without the selector, whatever --moe-backend says. AITER's build is taken to know
// SiTU. gfx950 keeps the converter; on gfx942 the method converts by itself, with loss.
void serve_situ_directly(RuleSet& rules) {
  const auto on = [](std::string_view arch) {
    return all_of({aiter_moe_enabled(kAiterDevicesWithGfx1250), arch_contains(arch),
                   activation_in({"situ"}), situ_linear_beta()});
  };
  const Condition to_int4{
      "quantization_config.moe.weight int4_per_group_32",
      [](const Question& q) { return q.deployment.weight_override == "int4_per_group_32"; }};
  const std::vector<DirectRow> exceptions = {
      {on("gfx950"), AITER_MXFP4_BF16, "AiterExperts",
       "this method bypasses the oracle for SiTU on gfx950: moe_backend and override are ignored"},
      {all_of({on("gfx942"), to_int4}), AITER_MXFP4_BF16, "AiterExperts",
       "this method bypasses the oracle: on gfx942 it requantizes SiTU's experts from MXFP4 to "
       "int4, with loss; moe_backend is ignored",
       "aiter_weight", "int4"}};
  for (CallerRow& row : rules.callers) {
    if (row.family == Family::kGeneric && row.direct.empty()) row.exceptions = exceptions;
  }
}

constexpr std::string_view kPassthrough = "passthrough";
constexpr std::string_view kMoeEpNames[] = {"flashinfer_moe_ep_cutedsl",
                                            "flashinfer_moe_ep_mega_deep_gemm"};

Condition moe_ep_asked() {
  std::vector<Condition> names;
  for (const std::string_view name : kMoeEpNames) names.push_back(moe_backend_is(name));
  return any_of(std::move(names));
}

bool is_moe_ep(std::optional<Backend> backend) {
  return backend == FLASHINFER_MOE_EP_CUTEDSL || backend == FLASHINFER_MOE_EP_DEEP_GEMM;
}

// config/kernel.py, bind_passthrough_all2all_backend and validate_flashinfer_moe_ep_model: asked at
// start-up, before a layer is made.
void stop_moe_ep_at_start(RuleSet& rules) {
  edit::add(rules.load_notes,
            {"all-to-all of MoE-EP",
             [](const LoadFacts& f) {
               const std::string_view used = f.question.parallel.all2all_backend;
               return is_moe_ep(f.decision.backend) && used != "allgather_reducescatter" &&
                      used != kPassthrough;
             },
             "{value} dispatches and combines itself, and the engine refuses "
             "--all2all-backend {all2all} beside it: start-up stops with ValueError",
             "", /*stops=*/true});
  edit::add(rules.load_notes,
            {"passthrough",
             [](const LoadFacts& f) {
               return f.decision.backend && !is_moe_ep(f.decision.backend) &&
                      f.question.parallel.all2all_backend == kPassthrough;
             },
             "the all-to-all backend passthrough belongs to --moe-backend flashinfer_moe_ep_*: "
             "beside {value} start-up stops with ValueError",
             "", /*stops=*/true});
  edit::add(rules.load_notes,
            {"model of MoE-EP",
             [](const LoadFacts& f) {
               const std::string_view model = f.question.deployment.model_type;
               return f.decision.backend == FLASHINFER_MOE_EP_DEEP_GEMM && !model.empty() &&
                      !model.starts_with("deepseek_v4");
             },
             "{value} serves DeepSeek-V4 and V4.1 only: start-up stops with ValueError", "",
             /*stops=*/true});
}

// compressed-tensors asks the oracle for flashinfer_moe_ep_*, and then has EPLB; AutoRound refuses
// them (compressed_tensors_moe_w4a4_mxfp4.py, inc_mxfp4_moe.py).
void ask_for_moe_ep(RuleSet& rules) {
  for (CallerRow& row : rules.callers) {
    if (!chooses_itself(row)) continue;
    DirectRow added = oracle_row(moe_ep_asked());
    if (row.method == kAutoRoundMethod) {
      added.asks_oracle = false;
      added.experts_class = "none";
      added.note = "this method bypasses the oracle";
      added.refusal = {"ValueError",
                       "moe_backend='{moe_backend}' is not supported for AutoRound (INC) MXFP4 MoE "
                       "checkpoints"};
    }
    edit::add_first(row.direct, std::move(added));
  }
  stop_moe_ep_at_start(rules);
  edit::row(rules.load_notes, "EPLB").holds = [](const LoadFacts& f) {
    if (f.caller == nullptr || !f.question.parallel.enable_eplb) return false;
    return f.caller->method == "GptOssMxfp4MoEMethod" || f.caller->method == kAutoRoundMethod ||
           (f.caller->method == kCompressedTensorsMethod && !is_moe_ep(f.decision.backend));
  };
}

// oracle/mxfp4.py, _validate_mxfp4_experts_config: the engine asks the class that was chosen
// whether it supports the deployment.
void ask_classes_afterwards(RuleSet& rules) {
  for (CallerRow& row : rules.callers) {
    if (!chooses_itself(row)) continue;
    for (DirectRow& direct : row.direct) {
      if (direct.backend) {
        direct.asked_key = direct.backend == CUTLASS_MXFP4_MXFP4 ? "mxfp4" : "";
      }
    }
  }
}

void require_deepseek_v41(RuleSet& rules) {
  edit::add_first(
      rules.requirements,
      {"A4W4 of AITER",
       none_of({all_of({gated(), aiter_moe_enabled(kAiterDevicesWithGfx1250),
                        env_number("VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4", false),
                        none_of({model_type_in({"deepseek_v41", "deepseek_v41_text"})})})}),
       {"ValueError",
        "VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4=1 only supports model_type in ('deepseek_v41', "
        "'deepseek_v41_text'), got {model_type}. Unset this env var for this model."}});
}

// models/deepseek_v4/amd/mega_moe.py: aiter_mega_moe for DeepSeek-V4. The kernel reads the sizes of
// the model.
void add_aiter_mega_moe(RuleSet& rules) {
  ModelBackendRow row{.moe_backend = "aiter_mega_moe",
                      .model_types = {"deepseek_v4"},
                      .when = platform_is(Platform::kRocm),
                      .backend = AITER_MEGA_MOE,
                      .experts_class = "DeepseekV4AiterMegaMoEExperts",
                      .requirements = {}};
  row.requirements = {
      {"AITER",
       aiter_moe_enabled(kAiterDevicesWithGfx1250),
       {"ValueError",
        "--moe-backend aiter_mega_moe requires VLLM_ROCM_USE_AITER=1  and "
        "VLLM_ROCM_USE_AITER_MOE=1."}},
      {"device",
       arch_contains("gfx950"),
       {"NotImplementedError", "AITER MegaMoE requires gfx950."}},
      {"ranks",
       all_of({expert_parallel_enabled(), tp_is(1)}),
       {"NotImplementedError",
        "AITER MegaMoE requires data parallel attention with expert parallel MoE: "
        "--data-parallel-size N --enable-expert-parallel with TP=1 and PP=1."}},
      {"all-to-all",
       all2all_backend_in({"mori_high_throughput", "mori_low_latency"}),
       {"ValueError",
        "AITER MegaMoE runs on MoRI shmem; add --all2all-backend mori_high_throughput."}},
      {"EPLB", none_of({eplb()}), {"NotImplementedError", "AITER MegaMoE does not support EPLB."}},
      // The class drops the last experts without a word.
      {"even experts",
       experts_divide(false),
       {"", "AITER MegaMoE drops experts: {num_experts} are not divisible by {ep_size} ranks"}}};
  edit::add(rules.model_backends, std::move(row));
  rules.layouts.push_back({AITER_MEGA_MOE, Family::kGeneric, {}, &kAiterBf16HalvesLayout});
  edit::add_first(
      rules.rounding,
      {{"AITER_MEGA_MOE", [](const Target& t) { return t.backend == AITER_MEGA_MOE; }}, 1, 1});
}

constexpr std::string_view kStatic =
    "Humming wants the static scale of such activations as a tensor, which this method's layers do "
    "not have: loading stops with KeyError";
constexpr std::string_view kNo4Bit =
    "Humming has no 4-bit activations for MXFP4 weights below capability 10.0: loading stops with "
    "ValueError";
constexpr std::string_view kGroup128 =
    "Humming has FP8 activations in groups of 128 on capability 9.0 only: loading stops with "
    "ValueError";
constexpr std::string_view kGroup32 =
    "Humming has no FP8 activations with F32 scales in groups of 32 on capability 12.x: loading "
    "stops with AssertionError";

// humming-kernels 0.1.17.
void replace_humming_layouts(RuleSet& rules) {
  using namespace humming;
  std::vector<LayoutRow> rows = {
      refused({"static FP8 activations",
               [](const Target& t) { return type_of(t) == "fp8_per_tensor_static"; }},
              kStatic, "KeyError")};
  std::ranges::copy(refused_when_loading(), std::back_inserter(rows));
  rows.insert(
      rows.end(),
      {refused({"FP8 activations in groups of 64", is_fp8_group64}, kOtherType, "ValueError"),
       refused({"4-bit activations, CUDA capability below 10.0",
                [](const Target& t) { return is_fp4(t) && arch_below(t, 100); }},
               kNo4Bit, "ValueError"),
       refused({"FP8 activations in groups of 128, CUDA capability other than 9.0",
                [](const Target& t) {
                  return is_fp8_group128(t) && cuda_capability(t.arch).value_or(90) != 90;
                }},
               kGroup128, "ValueError"),
       refused({"FP8 activations with F32 scales in groups of 32, CUDA capability 12.x",
                [](const Target& t) { return is_fp8_group32(t) && arch_12(t); }},
               kGroup32, "AssertionError"),
       packed(kInt8, kHummingInt8Layout),
       packed({"FP8 activations in groups of 128", is_fp8_group128}, kHummingFp8PackedKLayout),
       packed({"FP8 activations with F32 scales in groups of 32", is_fp8_group32},
              kHummingFp8Layout),
       packed({"FP8 or MXFP4 activations, CUDA capability 10.x or 11.x",
               [](const Target& t) {
                 return (is_fp8(t) || is_fp4(t)) && arch_from(t, 100) && arch_below(t, 120);
               }},
              kHummingUmmaLayout),
       packed(kFp8On12, kHummingMxmmaFp8Layout), packed(kFp4On12, kHummingMxmmaFp4Layout),
       packed(kFp8Below12, kHummingFp8Layout),
       packed({"FP16 activations, CUDA capability 10.0 or above, cuda_compiler from 12.7 on",
               [](const Target& t) { return fp16_params(t) && native(t); }},
              kHummingMmaNativeFp16Layout),
       packed({"FP16 activations", [](const Target& t) { return fp16_params(t) && kMma.holds(t); }},
              kHummingMmaFp16Layout),
       packed(kNative, kHummingMmaNativeLayout), packed(kMma, kHummingMmaLayout)});
  replace_rows(rules, std::move(rows));
}

// oracle/mxfp4.py: the generic converter passes on what the checkpoint said; gpt-oss's passes on
// nothing.
void tell_humming_0_32(RuleSet& rules) {
  for (InputDtypeRow& row : rules.input_dtypes) row.checkpoint = row.family == Family::kGeneric;
}

}  // namespace

void change_methods_0_32(RuleSet& rules) {
  serve_fp8_activations(rules);
  serve_situ_directly(rules);
  require_deepseek_v41(rules);
  add_aiter_mega_moe(rules);
  ask_for_moe_ep(rules);
  ask_classes_afterwards(rules);
}

void change_humming_0_32(RuleSet& rules) {
  replace_humming_layouts(rules);
  tell_humming_0_32(rules);
}

}  // namespace mxfp4
