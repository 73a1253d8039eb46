// vLLM 0.27.0 (fused_moe/oracle/mxfp4.py, vllm/_aiter_ops.py, quantization/mxfp4.py): AITER's
// Triton kernel, and gfx1250 with it; SiTU; emulation for generic models on ROCm; every mxfp4
// checkpoint but gpt-oss gets the generic method.
#include "lib/core/model_config.hpp"
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/triton_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/releases.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

void add_aiter_triton(RuleSet& rules) {
  const Condition enabled = aiter_moe_enabled(kAiterDevicesWithGfx1250);
  ExpertClass& aiter = edit::row(rules.classes, "AiterExperts");
  edit::row(aiter.checks, "device").passes = enabled;
  aiter.suffix->when = none_of({enabled});
  edit::row(rules.requirements, "Mori").must_hold =
      any_of({not_over({"mori_high_throughput", "mori_low_latency"}), all_of({enabled, gated()})});
  edit::add_after(
      rules.classes, "AiterExperts",
      generic_class({.name = "AiterW4A16ExpertsMonolithic",
                     .monolithic = true,
                     .device = aiter_on({"gfx950", "gfx1250"}),
                     .activation = activation_in({"swigluoai", "silu"}),
                     .scheme = no_key(),
                     .parallel = monolithic_parallel(),
                     .routing = routing_in({"Renormalize", "RenormalizeNaive", "DeepseekV4"})}));
  edit::add(edit::row(rules.backends, AITER_MXFP4_BF16).classes, "AiterW4A16ExpertsMonolithic");
  edit::condition(rules, "AiterW4A8ExpertsMonolithic", "device") = aiter_on({"gfx950", "gfx1250"});
  edit::add_layouts(rules, {{AITER_MXFP4_BF16, Family::kGeneric, kGfx1250, &kTritonStridedLayout}});
}

// gfx1250 is AITER's. Marlin refuses only NVLink's two-sided kernels, and TRTLLM's fused router
// takes DeepSeek-V3's routing method.
void change_classes_0_27(RuleSet& rules) {
  for (const std::string_view name : kTritonClasses) {
    edit::condition(rules, name, "device") = triton_device(11, gfx12_but_gfx1250());
  }
  for (const std::string_view name : {"MarlinExperts", "BatchedMarlinExperts"}) {
    edit::condition(rules, name, "parallel") =
        not_over({"flashinfer_all2allv", "flashinfer_nvlink_two_sided"});
  }
  edit::condition(rules, "TrtLlmMxfp4ExpertsMonolithic", "routing") =
      routing_in({"DeepSeekV3", "Renormalize", "RenormalizeNaive"});
}

void emulate_on_rocm(RuleSet& rules) {
  SelectorRow& by_key = edit::row(rules.selectors, Selector::kGptOss);
  edit::remove(by_key.exhausted, platform_is(Platform::kRocm).text);
  edit::remove(by_key.exhausted, platform_is(Platform::kCuda).text);
  edit::row(by_key.exhausted, always().text).refusal = Refusal{
      "NotImplementedError",
      "No MXFP4 MoE backend supports the deployment configuration. "
      "weight_key=kMxfp4Static, activation_key={model_key}. Candidate backends were: {candidates}. "
      "Unsupported reasons: {reasons}. "};
  SelectorRow& deepseek = edit::row(rules.selectors, Selector::kDeepseekV4);
  edit::add(edit::row(deepseek.priorities, platform_is(Platform::kRocm).text).backends, EMULATION);
}

// The generic converter takes emulation.
void convert_for_emulation(RuleSet& rules) {
  edit::drop_layouts(rules, EMULATION, Family::kGeneric);
  edit::add_layouts(rules, {{EMULATION, Family::kGeneric, {}, &kIdentityLayout}});
  edit::reword_generic_refusals(rules, "TRTLLM, Triton, AITER, XPU, or emulation");
  edit::converter(rules, Family::kGeneric, EMULATION).supported = true;
}

bool is_method(const ModelConfig& config, std::string_view name) {
  return config.quantization && config.quantization->name == name;
}

// quantization/mxfp4.py, get_quant_method; quantization/inc/. The engine rewrites Kimi-K3's
// quant_method to mxfp4.
void serve_with_generic_method(RuleSet& rules) {
  constexpr std::string_view kDeepseekV4 =
      "quant_method fp8 or deepseek_v4_fp8, model_type deepseek_v4, expert_dtype fp4";
  constexpr std::string_view kCompressed = "compressed-tensors, 4-bit float, group 32, symmetric";
  CallerRow& other = edit::row(rules.callers, "quant_method mxfp4, any other model_type");
  other = {.text = other.text,
           .holds = other.holds,
           .method = "Mxfp4MoEMethod",
           .selector = Selector::kDeepseekV4,
           .family = Family::kGeneric,
           .minimum_capability = 80};
  CallerRow kimi = other;
  kimi.text = "compressed-tensors mxfp4-pack-quantized, model_type kimi_k3";
  kimi.holds = [](const ModelConfig& c) {
    return is_method(c, "compressed-tensors") && c.model_type.starts_with("kimi_k3") &&
           c.quantization->format == "mxfp4-pack-quantized";
  };
  edit::add_before(rules.callers, kCompressed, std::move(kimi));

  CallerRow quark = edit::row(rules.callers, kDeepseekV4);
  quark.text = "Quark fp4 weights, model_type deepseek_v4";
  quark.holds = [](const ModelConfig& c) {
    return is_method(c, "quark") && c.model_type == "deepseek_v4";
  };
  quark.scale_fill = std::byte{0};
  edit::add_after(rules.callers, kDeepseekV4, std::move(quark));

  CallerRow auto_round = edit::row(rules.callers, kCompressed);
  auto_round.text = "AutoRound (INC) mx_fp, 4 bits, group 32";
  auto_round.holds = [](const ModelConfig& c) {
    return is_method(c, "auto-round") || is_method(c, "inc");
  };
  auto_round.method = "INCMxfp4MoEMethod";
  edit::add(rules.callers, std::move(auto_round));
}

// Kimi-K3's smallest slices (models/kimi_k3/nvidia/model.py, KimiMoE.__init__;
// models/kimi_k3/amd/linear.py). NVIDIA's class asks for expert parallelism first, AMD's does not.
void cut_kimi_k3(RuleSet& rules) {
  const auto is_kimi_k3 = [](const ModelConfig& c) { return c.model_type.starts_with("kimi_k3"); };
  rules.least_slices.push_back({"model_type kimi_k3", is_kimi_k3, Platform::kRocm, 256, true});
  rules.least_slices.push_back({"model_type kimi_k3", is_kimi_k3, {}, 256, false});
}

// Kimi-K3 on gfx950, whose method class takes AITER without the selector: quantization/mxfp4.py,
// _use_k3_situ_aiter and _setup_kernel_k3_situ. AITER's build is taken to know SiTU.
void serve_situ_on_gfx950(RuleSet& rules) {
  const DirectRow direct{
      all_of({aiter_moe_enabled(kAiterDevices), arch_contains("gfx950"), activation_in({"situ"}),
              situ_linear_beta()}),
      AITER_MXFP4_BF16, "AiterExperts",
      "this method bypasses the oracle for SiTU on gfx950: moe_backend and override are ignored"};
  for (CallerRow& row : rules.callers) {
    if (row.family == Family::kGeneric && row.direct.empty()) row.exceptions = {direct};
  }
  edit::add_layouts(
      rules, {{AITER_MXFP4_BF16, Family::kGeneric, kSituAitersSwitch, &kAiterBf16SituA8w4Layout},
              {AITER_MXFP4_BF16, Family::kGeneric, kSitu, &kAiterBf16SituLayout}});
  edit::add_first(rules.rounding,
                  {{"AITER_MXFP4_BF16, situ",
                    [](const Target& t) { return t.backend == AITER_MXFP4_BF16 && situ(t); }},
                   1,
                   1});
}

// models/kimi_k3/nvidia/model.py. The kernel's own limits are DeepSeek's, too.
void add_kimi_mega_moe(RuleSet& rules) {
  constexpr std::string_view kNotImplemented = "NotImplementedError";
  ModelBackendRow& deepseek = edit::row(rules.model_backends, "DeepseekV4MegaMoEExperts");
  ModelBackendRow row{.moe_backend = deepseek.moe_backend,
                      .model_types = {"kimi_k3"},
                      .when = platform_is(Platform::kCuda),
                      .backend = DEEP_GEMM_MEGA_MOE,
                      .experts_class = "KimiK3MegaMoEExperts",
                      .requirements = {}};
  row.requirements = {
      {"expert parallel",
       expert_parallel_enabled(),
       {kNotImplemented,
        "Kimi K3 MegaMoE requires expert parallel. Enable it with --enable-expert-parallel."}},
      {"activation",
       activation_in({"situ"}),
       {"ValueError", "Kimi K3 MegaMoE requires SITU activation."}},
      {"latent experts",
       {"routed_expert_hidden_size in config.json",
        [](const Question& q) { return q.deployment.latent_experts; }},
       {"ValueError", "Kimi K3 MegaMoE requires latent MoE projections."}},
      {"grouped top-k",
       {"use_grouped_topk", [](const Question& q) { return q.deployment.grouped_topk; }},
       {"ValueError", "Kimi K3 MegaMoE requires grouped top-k routing."}},
      {"groups",
       {"one expert group",
        [](const Question& q) {
          return q.deployment.expert_groups == 1 && q.deployment.taken_groups == 1;
        }},
       {kNotImplemented, "Kimi K3 MegaMoE currently requires one expert group."}},
      {"even experts",
       experts_divide(false),
       {"ValueError", "Kimi K3 num_experts={num_experts} must be divisible by EP size {ep_size}."}},
      edit::row(deepseek.requirements, "device"),
      edit::row(deepseek.requirements, "sizes")};
  edit::add(rules.model_backends, std::move(row));
}

// GLM-4.5, MiniMax-M3 and Qwen3.5, too.
void fuse_more_shared_experts(RuleSet& rules) {
  for (FusedSharedRow& row : rules.fused_shared) {
    for (const std::string_view model :
         {"glm4_moe", "minimax_m3", "minimax_m3_vl", "qwen3_5_moe"}) {
      row.model_types.push_back(model);
    }
  }
}

}  // namespace

const Release kRelease0270 = {
    .name = "vllm-0.27.0",
    .date = "2026-08-10",
    .commit = "4bdc8a788",
    .pins = {{"flashinfer", "0.6.16.post3"}, {"humming-kernels", "0.1.10"}},
    .changes =
        "AITER's Triton kernel; gfx1250; SiTU; emulation for generic models; the generic "
        "method for every mxfp4 model but gpt-oss, Kimi-K3 and AutoRound",
    .apply =
        [](RuleSet& rules) {
          add_aiter_triton(rules);
          change_classes_0_27(rules);
          emulate_on_rocm(rules);
          convert_for_emulation(rules);
          serve_with_generic_method(rules);
          serve_situ_on_gfx950(rules);
          cut_kimi_k3(rules);
          edit::add_layouts(rules, {kNoDeepgemmOn12});
          // fused_moe/routed_experts.py, weight_loader: biases of generic models.
          rules.loader.loads_biases = true;
          rules.loader.creates_biases = true;
          edit::add_after(rules.activations, "swigluoai", "situ");
          edit::add_after(rules.packages, "flashinfer_cutlass", "flashinfer_situ");
          edit::add_after(edit::row(rules.stock_packages, Platform::kCuda).packages,
                          "flashinfer_cutlass", "flashinfer_situ");
          edit::add_after(rules.option_names, "triton", "batched_triton");
          edit::row(rules.rounding, "FLASHINFER_TRTLLM_*").intermediate_multiple = 128;
          add_kimi_mega_moe(rules);
          fuse_more_shared_experts(rules);
        },
};

const Release kRelease0271 = {
    .name = "vllm-0.27.1",
    .date = "2026-08-11",
    .commit = "6e448d0ea",
    .pins = {{"flashinfer", "0.6.16.post3"}, {"humming-kernels", "0.1.10"}},
    .changes = "no rule",
};

}  // namespace mxfp4
