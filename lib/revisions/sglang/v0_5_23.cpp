// SGLang 0.5.23: fresh scale buffers of gpt-oss hold 1.0; DeepSeek-V4's classes pad I by themselves
// (srt/layers/quantization/mxfp4_flashinfer_trtllm_moe.py, mxfp4_marlin_moe.py); Bailing V3 has FP4
// experts, too (srt/arg_groups/model_overrides/bailing_moe_v3.py).
#include <algorithm>
#include <cstddef>
#include <utility>

#include "lib/core/model_config.hpp"
#include "lib/layouts/triton_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/releases.hpp"
#include "lib/revisions/sglang/tables.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

bool marlin_of_fp4_experts_on_hopper(const Target& t) {
  return t.backend == MARLIN && cuda_capability(t.arch).value_or(0) / 10 == 9;
}

CallerRow bailing_caller(const RuleSet& rules) {
  const auto like = std::ranges::find(rules.callers, sglang::kFp4ExpertsText, &CallerRow::text);
  CallerRow row = *like;
  row.text = "quant_method fp8, routed_experts_quant_method mxfp4";
  row.holds = [](const ModelConfig& c) {
    return c.quantization && c.quantization->routed_experts == "routed_experts_quant_method";
  };
  row.selector = Selector::kGptOss;
  // The override of Bailing V3 does not look at SGLANG_DSV4_FP4_DEQUANT.
  const Condition by_default =
      any_of({sglang::on_cuda(9), sglang::on_cuda(10), sglang::on_cuda(12)});
  DirectRow dequantized = sglang::dequantized_to_fp8();
  dequantized.when = all_of({dequantized.when, none_of({by_default})});
  row.direct = {sglang::not_executed_a2a(), dequantized, sglang::dequant_and_runner()};
  for (DirectRow& direct : sglang::fp4_experts_classes(by_default)) {
    row.direct.push_back(std::move(direct));
  }
  return row;
}

// srt/configs/model_config.py: the same key as vLLM's, for this model only. Not executed.
CallerRow mimo_caller(const RuleSet& rules) {
  CallerRow row = bailing_caller(rules);
  row.text = "quant_method fp8, store_dtype mxfp4, model_type mimo_v2";
  row.holds = [](const ModelConfig& c) {
    return c.quantization && c.quantization->routed_experts == "store_dtype" &&
           c.model_type.starts_with("mimo_v2");
  };
  row.direct = {
      {.when = always(),
       .backend = {},
       .experts_class = "Fp8MoEMethod",
       .note = "",
       .refusal = {"",
                   "SGLang's preparation of MiMo-V2's MXFP4 experts was not executed, and "
                   "no layout is known for it"}}};
  return row;
}

}  // namespace

const Release kSglang0523 = {
    .name = "sglang-0.5.23",
    .date = "2026-10-30",
    .pins = {{"flashinfer", "0.7.2"},
             {"sglang-kernel", "0.4.10"},
             {"humming-kernels", "0.1.12"},
             {"sgl-deep-gemm", "0.2.3.post2"}},
    .changes = "DeepSeek-V4's classes pad I; Bailing V3's FP4 experts",
    .apply =
        [](RuleSet& rules) {
          edit::add_before(rules.callers, sglang::kFp4ExpertsText, bailing_caller(rules));
          edit::add_before(rules.callers, sglang::kFp4ExpertsText, mimo_caller(rules));
          sglang::refuse_data_parallel(rules);
          for (const std::string_view name : {"lora_cutedsl", "lora_triton", "lora_marlin"}) {
            edit::add(rules.option_names, name);
          }
          RoundingRow trtllm{
              {"TRT-LLM of FP4 experts",
               [](const Target& t) { return t.backend == FLASHINFER_TRTLLM_MXFP4_MXFP8; }},
              1,
              128};
          trtllm.method = "Fp8MoEMethod";
          trtllm.hidden_fill = trtllm.intermediate_fill = sglang::kScaleOfOne;
          edit::add_before(rules.rounding, "AITER", trtllm);
          RoundingRow marlin{
              {"MARLIN of FP4 experts on capability 9.x", marlin_of_fp4_experts_on_hopper},
              256,
              64};
          marlin.method = "Fp8MoEMethod";
          marlin.hidden_fill = sglang::kScaleOfOne;
          marlin.intermediate_fill = std::byte{0};
          edit::add_before(rules.rounding, "MARLIN of FP4 experts", marlin);
          edit::replace_layout(rules, kTritonHopper64OnesLayout, kTritonHopper256OnesLayout);
        },
};

}  // namespace mxfp4
