// vLLM 0.24.0: 0.25.0 before emulation joined the lists, before Humming's classes took the shared
// checks, and with gate and up apart in AITER's weights for generic models.
#include <algorithm>
#include <utility>

#include "lib/layouts/all.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/r2026_05_18_tables.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

// Humming's own check replaces the shared ones completely.
void undo_humming(RuleSet& rules) {
  const Condition grouped =
      env_is_one_of("VLLM_HUMMING_MOE_GEMM_TYPE", {"grouped", "grouped_contiguous"});
  const auto checks = [](Condition format, Condition gemm_type) {
    return std::vector<Check>{
        {"format", std::move(format), "activation_format mismatched"},
        {"gemm type", std::move(gemm_type), "preferred gemm type mismatched"}};
  };
  edit::expert_class(rules, "BatchedHummingGroupedExperts").checks =
      checks(batched_format(), always());
  edit::expert_class(rules, "HummingGroupedExperts").checks =
      checks(none_of({batched_format()}), grouped);
  edit::expert_class(rules, "HummingIndexedExperts").checks =
      checks(none_of({batched_format()}), none_of({grouped}));
  rules.gemm_type = {};
}

void undo_layouts(RuleSet& rules) {
  edit::drop_layouts(rules, AITER_MXFP4_BF16, Family::kGeneric);
  edit::drop_layouts(rules, EMULATION, Family::kGptOss);
  edit::add_layouts(rules, {{AITER_MXFP4_BF16, Family::kGeneric, {}, &kAiterBf16SeparatedLayout},
                            {EMULATION, Family::kGptOss, {}, &kIdentityLayout}});
}

}  // namespace

const Release kRelease0240 = {
    .name = "vllm-0.24.0",
    .version = "0.24.0",
    .date = "2026-06-29",
    .commit = "ee0da84ab",
    .pins = {{"flashinfer", "0.6.12"}, {"humming-kernels", "0.1.6"}},
    .changes = "as 0.25.0, without emulation in the lists; Humming asks format and type alone",
    .executed = "12,335 of 12,335 decisions with traces; on a CPU, bytes of layouts",
    .base = &kRelease0250,
    .apply =
        [](RuleSet& rules) {
          undo_humming(rules);
          undo_layouts(rules);
          edit::add_layouts(rules, {kNoDeepgemmOn12});
          SelectorRow& by_key = edit::selector(rules, Selector::kGptOss);
          edit::remove(by_key.priorities.front().backends, EMULATION);
          for (ExhaustedRow& row : by_key.exhausted) {
            if (!row.refusal) continue;
            row.refusal->text =
                "No MXFP4 MoE backend supports the deployment configuration. "
                "weight_key=kMxfp4Static, activation_key={model_key}. Native backends require "
                "specific hardware. Set `VLLM_LOGGING_LEVEL=DEBUG` to see detailed unsupported "
                "reasons. To use the emulation backend for research/debugging, pass --moe-backend "
                "emulation.";
          }
          edit::condition(rules, "AiterExperts", "activation") =
              activation_in({"silu", "gelu", "swigluoai"});
          edit::remove(rules.option_names, std::string_view("hpc"));
          rules.uses_all2all = r2026_05_18::uses_all2all();
        },
};

}  // namespace mxfp4
