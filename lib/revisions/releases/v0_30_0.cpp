// vLLM 0.30.0 (fused_moe/oracle/mxfp4.py): AITER's Triton kernel becomes a backend of its own; CPU
// joins the lists; Humming groups with expert parallelism.
#include <algorithm>
#include <array>

#include "lib/core/model_config.hpp"
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

// AITER's kernel is only for ROCm. Of its machines only gfx950 has a swizzle, in a small world.
bool rocm_without_swizzle(const Target& t) {
  return on_rocm(t) && arch_known(t) && !gfx950_in_small_world(t);
}
constexpr TargetCondition kStrided{"other ROCm, gfx950 with a larger world", rocm_without_swizzle};

void split_aiter(RuleSet& rules) {
  constexpr std::string_view kClass = "AiterW4A16ExpertsMonolithic";
  edit::remove(edit::row(rules.backends, AITER_MXFP4_BF16).classes, kClass);
  edit::add_backend_after(rules, AITER_MXFP4_BF16,
                          {AITER_TRITON_MXFP4_BF16, "AITER_TRITON_MXFP4_BF16", "", {kClass}});
  edit::condition(rules, kClass, "device") = aiter_on({"gfx942", "gfx950", "gfx1250"});
  edit::add_after(edit::row(rules.aliases, "aiter").candidates, AITER_MXFP4_BF16,
                  AITER_TRITON_MXFP4_BF16);
  edit::add_after(rules.aliases, "aiter", {"aiter_triton_mxfp4_bf16", {AITER_TRITON_MXFP4_BF16}});
  SelectorRow& by_key = edit::row(rules.selectors, Selector::kGptOss);
  edit::add_after(edit::row(by_key.priorities, always().text).backends, AITER_MXFP4_BF16,
                  AITER_TRITON_MXFP4_BF16);
  edit::add_after(rules.option_names, "aiter", "aiter_triton_mxfp4_bf16");
}

// Both families share one function for CPU. For AITER's Triton kernel the generic converter
// interleaves gate and up rows before it packs them.
void change_layouts_0_30(RuleSet& rules) {
  edit::drop_layouts(rules, CPU, Family::kGeneric);
  edit::reword_generic_refusals(
      rules, "TRTLLM, FlashInfer CUTLASS, Triton, AITER, XPU, CPU, or emulation");
  constexpr Backend kTriton = AITER_TRITON_MXFP4_BF16;
  constexpr Family kGptOss = Family::kGptOss;
  constexpr Family kGeneric = Family::kGeneric;
  edit::add_layouts(rules, {{CPU, kGeneric, kNoCpuKernels, nullptr, kNoCpuKernelsRefusal},
                            {CPU, kGeneric, {}, &kCpuVnni32Layout},
                            {kTriton, kGptOss, kCdna4, &kTritonCdna4Layout},
                            {kTriton, kGptOss, kStrided, &kTritonStridedLayout},
                            {kTriton, kGeneric, kCdna4, &kTritonCdna4RowInterleavedLayout},
                            {kTriton, kGeneric, kStrided, &kTritonStridedRowInterleavedLayout}});
}

void list_cpu(RuleSet& rules) {
  SelectorRow& by_key = edit::row(rules.selectors, Selector::kGptOss);
  edit::add_before(edit::row(by_key.priorities, always().text).backends, EMULATION, CPU);
  edit::remove(by_key.exhausted, platform_is(Platform::kCpu).text);
  SelectorRow& deepseek = edit::row(rules.selectors, Selector::kDeepseekV4);
  edit::add_before(deepseek.priorities, always().text, {platform_is(Platform::kCpu), {CPU}});
  edit::row(rules.classes, "CPUExpertsMxfp4").monolithic = false;
  edit::condition(rules, "CPUExpertsMxfp4", "routing") =
      routing_in({"Default", "Renormalize", "RenormalizeNaive", "DeepseekV4"});
  edit::converter(rules, Family::kGeneric, CPU).supported = true;
}

// models/deepseek_v41/quant_config.py, override_quantization_method. DeepSeek-V4.1 has
// DeepSeek-V4's experts under another model_type. Quark's exports of it are any Quark model's.
void serve_deepseek_v41(RuleSet& rules) {
  constexpr std::string_view kLike =
      "quant_method fp8 or deepseek_v4_fp8, model_type deepseek_v4, expert_dtype fp4";
  CallerRow row = edit::row(rules.callers, kLike);
  row.text = "quant_method fp8 or deepseek_v4_fp8, model_type deepseek_v41, expert_dtype fp4";
  row.holds = [](const ModelConfig& c) {
    constexpr std::array<std::string_view, 3> kTypes = {"deepseek_v4_text", "deepseek_v41",
                                                        "deepseek_v41_text"};
    return c.quantization && !c.quantization->expert_dtype.empty() &&
           std::ranges::find(kTypes, c.model_type) != kTypes.end();
  };
  edit::add_after(rules.callers, kLike, std::move(row));
}

// models/deepseek_v41/nvidia/model.py. DeepSeek's classes pad the intermediate size, in this
// release only. Kimi-K3's class pads nothing, and its activation tells it from DeepSeek's.
void add_deepseek_v41_mega_moe(RuleSet& rules) {
  edit::row(rules.model_backends, "DeepseekV4MegaMoEExperts")
      .model_types.emplace_back("deepseek_v41");
  edit::add_first(
      rules.rounding,
      {{"DEEP_GEMM_MEGA_MOE, any activation but situ",
        [](const Target& t) { return t.backend == DEEP_GEMM_MEGA_MOE && t.activation != "situ"; }},
       1,
       512});
}

// models/deepseek_v4/amd/model.py, _heterogeneous_shared_expert_enabled: V4-Pro's FP8 shared expert
// beside the routed ones.
void fuse_fp8_shared_expert(RuleSet& rules) {
  rules.fused_shared.push_back(
      {.model_types = {"deepseek_v4"},
       .when = all_of({fuses_shared_experts(), arch_contains("gfx950"),
                       none_of({expert_parallel_enabled()}), none_of({eplb()}), tp_is(8),
                       none_of({dp_above_one()}), none_of({pcp_above_one()}),
                       moe_backend_is("aiter"), model_shape(384, 7168, 3072)}),
       .if_mxfp4 = false});
}

}  // namespace

const Release kRelease0300 = {
    .name = "vllm-0.30.0",
    .date = "2026-09-22",
    .commit = "ced6857af",
    .pins = {{"flashinfer", "0.6.18.post1"},
             {"triton_kernels", "3.5.1", Platform::kCuda},
             {"humming-kernels", "0.1.12"}},
    .changes = "AITER_TRITON_MXFP4_BF16; CPU in the lists, generic models too",
    .apply =
        [](RuleSet& rules) {
          split_aiter(rules);
          list_cpu(rules);
          change_layouts_0_30(rules);
          serve_deepseek_v41(rules);
          edit::row(rules.selectors, Selector::kDeepseekV4).filters_named = false;
          rules.gemm_type.any_value = true;
          rules.gemm_type.grouped_with_expert_parallel = true;
          edit::add(rules.option_names, "rdna3");
          add_deepseek_v41_mega_moe(rules);
          fuse_fp8_shared_expert(rules);
        },
};

}  // namespace mxfp4
