// vLLM 017e9f4448 (2026-08-17, fused_moe/oracle/mxfp4.py, fused_moe/experts/*.py), a commit of
// main: SiTU on AITER; the generic converter takes CUTLASS and AITER's quantized activations;
// emulation asks for amd-quark, and CPU for AMX.
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/triton_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/humming_rows.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/releases.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

void change_activations(RuleSet& rules) {
  edit::condition(rules, "FlashInferExperts", "activation") =
      activation_in({"silu", "gelu_tanh", "relu2_no_mul", "swigluoai", "swigluoai_uninterleave"});
  edit::condition(rules, "AiterExperts", "activation") =
      activation_in({"silu", "gelu", "situ", "swigluoai", "swigluoai_uninterleave"});
  for (const std::string_view name : kHummingClasses) {
    edit::condition(rules, name, "activation") = all_but_relu2();
    edit::condition(rules, name, "batch invariance") =
        any_of({none_of({env_number("VLLM_BATCH_INVARIANT", false)}), always()});
  }
}

void check_more(RuleSet& rules) {
  std::vector<Check>& emulation =
      edit::row(rules.classes, "OCP_MXQuantizationEmulationTritonExperts").checks;
  edit::add_first(emulation, {"package", package("quark"), "kernel requires amd-quark package"});
  edit::add(emulation,
            {"experts",
             any_of({none_of({platform_is(Platform::kCuda), platform_is(Platform::kRocm)}),
                     padded_experts_below(32, 1024)}),
             "kernel's moe_align_block_size requires fewer than 1024 padded experts"});
  // A CPU whose features are not known is taken for one with AMX.
  edit::condition(rules, "CPUExpertsMxfp4", "device") =
      all_of({platform_is(Platform::kCpu), arch_in({"", "x86_64", "x86_64-amx", "amd64"})});
}

// Only the generic method tells the rounding function its activation.
bool aiter_silu_or_situ(const Target& t) {
  return t.backend == AITER_MXFP4_BF16 && t.platform == Platform::kRocm &&
         t.family == Family::kGeneric && (t.activation == "silu" || t.activation == "situ");
}

// Kimi-K3's SiTU is the selector's again.
void leave_situ_to_selector(RuleSet& rules) {
  for (CallerRow& row : rules.callers) row.exceptions.clear();
  edit::drop_layouts(rules, AITER_MXFP4_BF16, kSituAitersSwitch);
  edit::drop_layouts(rules, AITER_MXFP4_BF16, kSitu);
  edit::remove(rules.rounding, "AITER_MXFP4_BF16, situ");
}

void convert_generic_models(RuleSet& rules) {
  constexpr Family kGeneric = Family::kGeneric;
  for (const Backend backend : {FLASHINFER_CUTLASS_MXFP4_BF16, FLASHINFER_CUTLASS_MXFP4_MXFP8,
                                AITER_MXFP4_FP8, AITER_MXFP4_MXFP4}) {
    edit::drop_layouts(rules, backend, kGeneric);
    edit::converter(rules, kGeneric, backend).supported = true;
  }
  edit::converter(rules, kGeneric, AITER_MXFP4_FP8).needs_input_scales = true;
  edit::add_layouts(
      rules,
      {{FLASHINFER_CUTLASS_MXFP4_BF16, kGeneric, {}, &kFlashinferCutlassSm90HalvesLayout},
       {FLASHINFER_CUTLASS_MXFP4_MXFP8, kGeneric, {}, &kFlashinferCutlassMxfp8HalvesLayout}});
  edit::reword_generic_refusals(rules,
                                "TRTLLM, FlashInfer CUTLASS, Triton, AITER, XPU, or emulation");

  leave_situ_to_selector(rules);
  edit::drop_layouts(rules, AITER_MXFP4_BF16, kGfx1250);
  edit::add_layouts(rules,
                    {{AITER_MXFP4_BF16, kGeneric, kGfx1250, &kTritonStridedLayout},
                     {AITER_MXFP4_BF16, kGeneric, kSituA8w4Switch, &kAiterBf16SituA8w4Layout},
                     {AITER_MXFP4_BF16, kGeneric, kSitu, &kAiterBf16SituLayout}});
  edit::add_before(
      rules.rounding, "rocm",
      {{"AITER_MXFP4_BF16 on rocm, generic, silu or situ", aiter_silu_or_situ}, 128, 128});
}

// No wheel has the kernels of this commit.
void refuse_unverified(RuleSet& rules) {
  humming::refuse_all(rules,
                      "no wheel has the converter of this commit: the bytes of its layouts are not "
                      "verified; those of 0.28.0 are");
  edit::drop_layouts(rules, DEEPGEMM_MXFP4, kCapability12);
  edit::add_layouts(rules, {{DEEPGEMM_MXFP4,
                             {},
                             kCapability12,
                             nullptr,
                             "no wheel has the DeepGEMM of this commit: its order of scales on "
                             "capability 12.x is not verified"}});
}

}  // namespace

const Release kCommit20260817 = {
    .name = "vllm-2026-08-17",
    .date = "2026-08-17",
    .commit = "017e9f4448",
    .pins = {{"flashinfer", "0.6.16.post3"},
             {"triton_kernels", "3.5.1", Platform::kCuda},
             {"ROCm/triton", "0f380657", Platform::kRocm},
             {"AITER", "0.1.19"},
             {"humming-kernels", "0.1.12"}},
    .changes =
        "a commit of main: SiTU on AITER; CUTLASS and AITER's quantized activations for "
        "generic models; checks of amd-quark and AMX",
    .apply =
        [](RuleSet& rules) {
          change_activations(rules);
          check_more(rules);
          convert_generic_models(rules);
          refuse_unverified(rules);
        },
};

}  // namespace mxfp4
