// SGLang 0.5.20: gpt-oss on SM120 takes FlashInfer's CUTLASS, DeepSeek-V4 does so or TRT-LLM on
// every GPU that has it (srt/arg_groups/model_overrides/); compressed-tensors' MXFP4 goes through
// Mxfp4MoEMethod, with Kimi-K3's default; XPU and DeepGEMM get paths
// (srt/layers/quantization/mxfp4.py).
#include <cstddef>
#include <utility>

#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/triton_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/releases.hpp"
#include "lib/revisions/sglang/tables.hpp"

namespace mxfp4 {
namespace {

using enum Backend;
using sglang::on_cuda;
using sglang::path;
using sglang::runner_is;
using sglang::stops;

std::vector<DirectRow> gpt_oss_paths_from_0_5_20() {
  const Condition by_default = all_of({runner_is("auto"), any_of({on_cuda(10), on_cuda(12)})});
  const Condition flashinfer = any_of({runner_is("flashinfer_mxfp4"), by_default});
  // XPU rounds I up to whole blocks.
  DirectRow overflow = sglang::slices_overflow();
  overflow.when = all_of({none_of({platform_is(Platform::kXpu)}), overflow.when});
  return {
      sglang::rocm_without_mx(),
      sglang::not_executed_a2a(),
      path(all_of({runner_is("marlin"), any_of({on_cuda(9), on_cuda(10), on_cuda(12)})}), MARLIN,
           "Mxfp4MoEMethod, marlin"),
      stops(runner_is("marlin"), "Mxfp4MoEMethod",
            {"RuntimeError", "MXFP4 Marlin requires SM90+."}),
      path(runner_is("deep_gemm"), DEEPGEMM_MXFP4, "Mxfp4MoEMethod, deep_gemm"),
      path(all_of({flashinfer, on_cuda(10)}), FLASHINFER_TRTLLM_MXFP4_MXFP8,
           "Mxfp4MoEMethod, flashinfer_mxfp4 (TRT-LLM)"),
      path(all_of({flashinfer, on_cuda(12)}), FLASHINFER_CUTLASS_MXFP4_MXFP8,
           "Mxfp4MoEMethod, flashinfer_mxfp4 (CUTLASS)"),
      path(all_of({flashinfer, on_cuda(9)}), FLASHINFER_CUTLASS_MXFP4_BF16,
           "Mxfp4MoEMethod, flashinfer_mxfp4 (CUTLASS)"),
      stops(runner_is("flashinfer_mxfp4"), "Mxfp4MoEMethod",
            {"NotImplementedError",
             "moe_runner_backend=flashinfer_mxfp4 requires SM90, SM100, or SM120."}),
      path(sglang::with_aiter(), AITER_MXFP4_BF16, "Mxfp4MoEMethod, AITER"),
      overflow,
      path(sglang::asks_triton(), TRITON, "Mxfp4MoEMethod, triton_kernel"),
      path(platform_is(Platform::kXpu), XPU, "Mxfp4MoEMethod, XPU"),
      path(all_of({platform_is(Platform::kCpu), arch_contains("amx")}), CPU, "Mxfp4MoEMethod, AMX"),
      sglang::bf16_upcast(always()),
  };
}

std::vector<DirectRow> fp4_experts_paths_from_0_5_20() {
  std::vector<DirectRow> rows = {sglang::not_executed_a2a(), sglang::dequantized_to_fp8(),
                                 sglang::dequant_and_runner()};
  const Condition by_default = any_of({on_cuda(9), on_cuda(10), on_cuda(12)});
  for (DirectRow& row : sglang::fp4_experts_classes(by_default)) rows.push_back(std::move(row));
  return rows;
}

// A8W4 comes first where both are on.
constexpr TargetCondition kSituA4W4{
    "activation situ, AITER_SITUV2_A4W4 without AITER_SITUV2_A8W4",
    situ,
    {{{"AITER_SITUV2_A4W4", reads_as_on}, {"AITER_SITUV2_A8W4", reads_as_off, true}}}};

bool trtllm_of_other_models(const Target& t) {
  return t.backend == FLASHINFER_TRTLLM_MXFP4_MXFP8 && t.family == Family::kGeneric;
}

void change_sizes(RuleSet& rules) {
  edit::row(rules.rounding, "TRT-LLM of gpt-oss").intermediate_multiple = 128;
  edit::row(rules.rounding, "AITER").intermediate_multiple = 128;
  // compressed-tensors: its quantization is not called mxfp4, so that H is not rounded before.
  RoundingRow trtllm{{"TRT-LLM of compressed-tensors", trtllm_of_other_models}, 128, 128};
  trtllm.method = "Mxfp4MoEMethod";
  edit::add_before(rules.rounding, "AITER", trtllm);
  RoundingRow cutlass{{"CUTLASS of compressed-tensors",
                       [](const Target& t) {
                         return t.backend == FLASHINFER_CUTLASS_MXFP4_BF16 &&
                                t.family == Family::kGeneric;
                       }},
                      128,
                      128};
  cutlass.method = "Mxfp4MoEMethod";
  edit::add_before(rules.rounding, "AITER", cutlass);
  RoundingRow aiter{{"AITER of compressed-tensors",
                     [](const Target& t) { return t.backend == AITER_MXFP4_BF16; }},
                    256,
                    256};
  aiter.method = "Mxfp4MoEMethod";
  edit::add_before(rules.rounding, "AITER", aiter);
  // Fresh buffers of scales hold 1.0; what CUTLASS's preparation adds afterwards holds zeros.
  for (RoundingRow& row : rules.rounding) {
    const bool no_fresh_scales = row.when.text == "AITER" || row.when.text.empty();
    if (!no_fresh_scales) row.hidden_fill = row.intermediate_fill = sglang::kScaleOfOne;
    if (row.when.text.starts_with("CUTLASS")) row.intermediate_fill = std::byte{0};
    if (row.when.text == "CUTLASS of compressed-tensors") row.hidden_fill = std::byte{0};
  }
  edit::add_before(rules.rounding, "TRITON",
                   {{"XPU", [](const Target& t) { return t.backend == XPU; }}, 1, 32});
}

}  // namespace

const Release kSglang0520 = {
    .name = "sglang-0.5.20",
    .date = "2026-09-18",
    .pins = {{"flashinfer", "0.6.18"},
             {"sglang-kernel", "0.4.7"},
             {"humming-kernels", "0.1.12"},
             {"sgl-deep-gemm", "0.2.0"}},
    .changes = "FlashInfer by default for DeepSeek-V4 and for gpt-oss on SM120; compressed-tensors",
    .apply =
        [](RuleSet& rules) {
          edit::row(rules.callers, sglang::kGptOssText).direct = gpt_oss_paths_from_0_5_20();
          edit::row(rules.callers, sglang::kFp4ExpertsText).direct =
              fp4_experts_paths_from_0_5_20();
          edit::add_before(rules.callers, sglang::kQuarkText,
                           sglang::compressed_tensors_caller(/*kimi=*/true));
          edit::add_before(rules.callers, sglang::kQuarkText,
                           sglang::compressed_tensors_caller(/*kimi=*/false));
          sglang::refuse_data_parallel(rules);
          edit::add(rules.activations, "situ");
          for (const std::string_view name :
               {"flashinfer_megamoe", "hpc_ops", "megamoe", "intel_xpu"}) {
            edit::add(rules.option_names, name);
          }
          edit::add_before(rules.aliases, "marlin", {"deep_gemm", {DEEPGEMM_MXFP4}});
          change_sizes(rules);
          // layers/quantization/mxfp4.py: XPU comes before triton_kernels there.
          edit::add_before(rules.rounding, "TRITON",
                           {{"TRITON on xpu",
                             [](const Target& t) {
                               return t.backend == TRITON && t.platform == Platform::kXpu;
                             }},
                            1,
                            32});
          edit::replace_layout(rules, kFlashinferCutlassSm90Layout,
                               kFlashinferCutlassSm90FoldedLayout);
          edit::replace_layout(rules, kFlashinferCutlassSm90HalvesLayout,
                               kFlashinferCutlassSm90FoldedHalvesLayout);
          edit::replace_layout(rules, kTritonHopper64Layout, kTritonHopper64OnesLayout);
          edit::add_layouts(
              rules, {{XPU, Family::kGptOss, {}, &kIdentityLayout},
                      {XPU, Family::kGeneric, {}, nullptr, sglang::kNotExecuted},
                      {DEEPGEMM_MXFP4, {}, {}, nullptr, sglang::kNotExecuted},
                      {AITER_MXFP4_BF16, Family::kGeneric, kSituA4W4, &kAiterBf16SeparatedLayout},
                      {AITER_MXFP4_BF16, Family::kGeneric, kSitu, &kAiterBf16HalvesLayout}});
        },
};

}  // namespace mxfp4
