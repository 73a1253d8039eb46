// vLLM 0.27.0 and 0.27.1: main of 2026-08-17 without SiTU, the generic method's CUTLASS and the
// checks of emulation and CPU, which came after their branch was cut.

#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/humming_kernels.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/releases.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

void undo_checks(RuleSet& rules) {
  std::erase_if(
      edit::expert_class(rules, "OCP_MXQuantizationEmulationTritonExperts").checks,
      [](const Check& check) { return check.topic == "package" || check.topic == "experts"; });
  edit::condition(rules, "CPUExpertsMxfp4", "device") = platform_is(Platform::kCpu);
  edit::condition(rules, "FlashInferExperts", "activation") =
      activation_in({"silu", "gelu_tanh", "relu2_no_mul", "swigluoai"});
  edit::condition(rules, "AiterExperts", "activation") =
      activation_in({"silu", "gelu", "swigluoai", "swigluoai_uninterleave"});
  for (const std::string_view name :
       {"BatchedHummingGroupedExperts", "HummingGroupedExperts", "HummingIndexedExperts"}) {
    edit::condition(rules, name, "activation") =
        none_of({activation_in({"relu2", "situ", "swigluoai_uninterleave"})});
    edit::condition(rules, name, "batch invariance") =
        none_of({env_number("VLLM_BATCH_INVARIANT", false)});
  }
}

// The generic converter has no branch for these, and does not know the activation.
void undo_converters_0_27(RuleSet& rules) {
  constexpr std::string_view kExpected = "TRTLLM, Triton, AITER, XPU, or emulation";
  for (const Backend backend :
       {FLASHINFER_CUTLASS_MXFP4_BF16, FLASHINFER_CUTLASS_MXFP4_MXFP8, CPU, NONE}) {
    edit::drop_layouts(rules, backend, Family::kGeneric);
    edit::add_layouts(rules, {edit::generic_refusal(backend, kExpected)});
    edit::converter(rules, Family::kGeneric, backend).supported = false;
  }
  edit::add_layouts(rules, {edit::generic_refusal(AITER_MXFP4_MXFP4, kExpected),
                            edit::generic_refusal(AITER_MXFP4_FP8, kExpected)});
  for (const Backend backend : {AITER_MXFP4_MXFP4, AITER_MXFP4_FP8}) {
    edit::converter(rules, Family::kGeneric, backend) = {backend, Family::kGeneric, false};
  }
  std::erase_if(rules.layouts, [](const LayoutRow& row) {
    return row.backend == AITER_MXFP4_BF16 && row.when.text.starts_with("activation situ");
  });
  std::erase_if(rules.rounding, [](const RoundingRow& row) {
    return row.when.text == "AITER_MXFP4_BF16 on rocm, generic, silu or situ";
  });
}

}  // namespace

const Release kRelease0270 = {
    .name = "vllm-0.27.0",
    .version = "0.27.0",
    .date = "2026-08-10",
    .commit = "4bdc8a788",
    .pins = {{"flashinfer", "0.6.16.post3"}, {"humming-kernels", "0.1.10"}},
    .changes =
        "as vllm-2026-08-17, without SiTU on AITER, CUTLASS for generic models, and the "
        "checks of amd-quark and AMX",
    .executed = "14,363 of 14,363 decisions with traces; on a CPU, bytes of layouts",
    .base = &kCommit20260817,
    .apply =
        [](RuleSet& rules) {
          undo_checks(rules);
          undo_converters_0_27(rules);
          humming_kernels_0_1_4(rules);
          edit::drop_layouts(rules, DEEPGEMM_MXFP4, kCapability12);
          edit::add_layouts(rules, {kNoDeepgemmOn12});
        },
};

const Release kRelease0271 = {
    .name = "vllm-0.27.1",
    .version = "0.27.1",
    .date = "2026-08-11",
    .commit = "6e448d0ea",
    .pins = {{"flashinfer", "0.6.16.post3"}, {"humming-kernels", "0.1.10"}},
    .changes = "as 0.27.0",
    .executed = "14,363 of 14,363 decisions with traces; on a CPU, bytes of layouts",
    .base = &kRelease0270,
    .apply = [](RuleSet& /*rules*/) {},
};

}  // namespace mxfp4
