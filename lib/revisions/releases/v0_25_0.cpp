// vLLM 0.25.0 (fused_moe/oracle/mxfp4.py, fused_moe/experts/*.py): emulation joins the lists;
// Humming's classes take the shared checks; the generic converter leaves AITER's gate and up halves
// as they are.
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/releases.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

std::vector<Check> humming_checks(std::string_view name, std::string_view gemm_type,
                                  std::string_view reason) {
  ExpertClass row = generic_class(
      {.name = name,
       .device =
           all_of({platform_is(Platform::kCuda), capability_at_least(7, 5), package("humming")}),
       .ungated = true,
       .activation = none_of({activation_in({"relu2", "situ", "swigluoai_uninterleave"})}),
       .scheme = none_or({"mxfp4", "mxfp8", "fp8_per_token"}),
       .parallel = always(),
       .routing = always(),
       .batched = gemm_type == "grouped_masked"});
  edit::add(row.checks, {"gemm type", gemm_type_is(gemm_type), reason});
  return row.checks;
}

// Until now Humming's own check replaced the shared ones completely.
void check_humming(RuleSet& rules) {
  rules.gemm_type.variable = "VLLM_HUMMING_MOE_GEMM_TYPE";
  const auto check = [&](std::string_view name, std::string_view type, std::string_view reason) {
    edit::row(rules.classes, name).checks = humming_checks(name, type, reason);
  };
  check("BatchedHummingGroupedExperts", "grouped_masked",
        "preferred gemm type {gemm_type} != supported gemm type grouped_masked");
  check("HummingGroupedExperts", "grouped_contiguous",
        "preferred gemm type {gemm_type} != supported gemm type grouped_contiguous");
  check("HummingIndexedExperts", "indexed",
        "preferred gemm type {gemm_type} != supported gemm type indexed");
}

void list_emulation(RuleSet& rules) {
  SelectorRow& by_key = edit::row(rules.selectors, Selector::kGptOss);
  edit::add(edit::row(by_key.priorities, always().text).backends, EMULATION);
  edit::row(by_key.exhausted, platform_is(Platform::kCuda).text).refusal->text =
      "No MXFP4 MoE backend supports the deployment configuration. "
      "weight_key=kMxfp4Static, activation_key={model_key}. Native backends require specific "
      "hardware. Set `VLLM_LOGGING_LEVEL=DEBUG` to see detailed unsupported reasons. ";
}

void change_layouts_0_25(RuleSet& rules) {
  edit::drop_layouts(rules, DEEPGEMM_MXFP4, kCapability12);
  edit::drop_layouts(rules, AITER_MXFP4_BF16, Family::kGeneric);
  edit::drop_layouts(rules, EMULATION, Family::kGptOss);
  edit::add_layouts(rules,
                    {{AITER_MXFP4_BF16, Family::kGeneric, kArchKnown, &kAiterBf16HalvesLayout},
                     {EMULATION, Family::kGptOss, {}, &kIdentityInputMaximumLayout}});
}

}  // namespace

const Release kRelease0250 = {
    .name = "vllm-0.25.0",
    .date = "2026-07-11",
    .commit = "dd10e03f9",
    .pins = {{"flashinfer", "0.6.13"}, {"humming-kernels", "0.1.10"}},
    .changes =
        "emulation in the list; Humming takes the shared checks; DeepGEMM on sm12x; other "
        "bytes of AITER_MXFP4_BF16 for generic models",
    .apply =
        [](RuleSet& rules) {
          check_humming(rules);
          list_emulation(rules);
          change_layouts_0_25(rules);
          edit::condition(rules, "AiterExperts", "activation") =
              activation_in({"silu", "gelu", "swigluoai", "swigluoai_uninterleave"});
          edit::add_after(rules.option_names, "flydsl", "hpc");
          rules.uses_all2all =
              all_of({expert_parallel(), any_of({dp_above_one(), sp_above_one()})});
        },
};

const Release kRelease0251 = {
    .name = "vllm-0.25.1",
    .date = "2026-07-12",
    .commit = "752a3a504",
    .pins = {{"flashinfer", "0.6.13"}, {"humming-kernels", "0.1.10"}},
    .changes = "no rule",
};

}  // namespace mxfp4
