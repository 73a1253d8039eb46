// vLLM 0.21.0: main three days before the commit of 2026-05-18. This file takes back what came in
// between. Users cannot give an activation key yet, and no backend is left out for its key.
#include <algorithm>

#include "lib/layouts/all.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/r2026_05_18_tables.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

void undo_keys(RuleSet& rules) {
  rules.takes_override = false;
  std::erase_if(rules.keys,
                [](const ActivationKeyRow& row) { return row.name == "int8_per_channel_static"; });
  SelectorRow& selector = edit::selector(rules, Selector::kGptOss);
  selector.drops_other_keys = false;
  selector.priorities.front().backends = {FLASHINFER_TRTLLM_MXFP4_BF16,
                                          AITER_MXFP4_BF16,
                                          AITER_MXFP4_FP8,
                                          TRITON,
                                          FLASHINFER_CUTLASS_MXFP4_BF16,
                                          MARLIN,
                                          BATCHED_MARLIN,
                                          XPU,
                                          EMULATION};
  edit::alias(rules, "flashinfer_trtllm").candidates = {FLASHINFER_TRTLLM_MXFP4_BF16};
  edit::alias(rules, "flashinfer_cutlass").candidates = {FLASHINFER_CUTLASS_MXFP4_BF16};
  edit::alias(rules, "aiter").candidates = {AITER_MXFP4_BF16};
  std::erase_if(selector.exhausted, [](const ExhaustedRow& row) {
    return row.last_try && row.last_try->backend == CPU;
  });
  for (ExhaustedRow& row : selector.exhausted) {
    if (row.refusal) {
      row.refusal->text = "No MXFP4 MoE backend supports the deployment configuration.";
    }
  }
}

void undo_backends(RuleSet& rules) {
  for (const Backend backend : {AITER_MXFP4_MXFP4, CPU}) edit::remove_backend(rules, backend);
  std::erase_if(rules.aliases, [](const AliasRow& row) {
    return row.name == "aiter_mxfp4_mxfp4" || row.name == "cpu";
  });
  ExpertClass& aiter = edit::expert_class(rules, "AiterExperts");
  aiter.suffix.reset();
  edit::condition(rules, "AiterExperts", "scheme") = all_of({no_key(), arch_contains("gfx950")});
  // ROCm's capabilities count as CUDA's do: gfx10 passes and gfx11 does not.
  for (const std::string_view name :
       {"OAITritonMxfp4ExpertsMonolithic", "OAITritonExperts", "UnfusedOAITritonExperts"}) {
    edit::condition(rules, name, "device") =
        all_of({any_of({platform_is(Platform::kCuda), platform_is(Platform::kRocm)}),
                package("triton_kernels"), capability_at_least(9, 0), capability_below(11, 0)});
  }
}

// QuarkOCP_MX_MoEMethod emulates where neither gfx95x nor AITER's fused MoE is there, whatever the
// oracle chose, and does not ask it for quantized activations.
void undo_quark(RuleSet& rules) {
  const Condition mx_device = all_of({platform_is(Platform::kRocm), arch_contains("gfx95")});
  for (CallerRow& row : rules.callers) {
    if (row.method != "QuarkOCP_MX_MoEMethod") continue;
    if (row.model_activation == "mxfp4") {
      row.model_activation = {};
      row.direct = {{mx_device,
                     {},
                     "AITER MXFP4xMXFP4",
                     "fp4 activations: the engine prepares the weights for AITER itself, without "
                     "asking the oracle"},
                    {always(), EMULATION, "OCP_MXQuantizationEmulationTritonExperts",
                     "fp4 activations: the engine emulates without asking the oracle"}};
    } else if (row.direct.empty()) {
      row.emulates_when = none_of({any_of({mx_device, r2026_05_18::aiter_moe_enabled()})});
    }
  }
}

void change_layouts_0_21(RuleSet& rules) {
  for (LayoutRow& row : rules.layouts) {
    if (row.layout == &kTritonHopperLayout) row.layout = &kTritonHopper64Layout;
    if (row.layout == &kTritonHopperKInterleavedLayout) {
      row.layout = &kTritonHopper64KInterleavedLayout;
    }
    if (row.layout == &kFlashinferCutlassSm90Layout) {
      row.layout = &kFlashinferCutlassSm90ScalesLayout;
    }
  }
  std::erase_if(rules.layouts, [](const LayoutRow& row) { return row.backend == HUMMING; });
  edit::add_layouts(
      rules, {{AITER_MXFP4_FP8, Family::kGptOss, kGfx942OrGfx1250, &kAiterW4a8Fp8StridedLayout}});
  edit::add_layouts(rules, {{HUMMING,
                             {},
                             {},
                             nullptr,
                             "this release pins no humming-kernels: the bytes of its layouts are "
                             "not verified"}});
  // The module that the humming helper of the commit of 2026-05-18 misses is still there.
  std::erase_if(rules.load_notes, [](const LoadNoteRow& row) {
    return row.fixed_in == "vLLM 206b72c982 (2026-05-27)";
  });
}

}  // namespace

const Release kRelease0210 = {
    .name = "vllm-0.21.0",
    .version = "0.21.0",
    .date = "2026-05-15",
    .commit = "ad7125a43",
    .pins = {{"flashinfer", "0.6.8.post1"}},
    .changes = "no user's activation key, no CPU; emulation in the list; other bytes on sm90",
    .executed = "9,620 of 9,620 decisions with traces; on a CPU, bytes of layouts",
    .base = &kCommit20260518,
    .apply =
        [](RuleSet& rules) {
          undo_keys(rules);
          undo_backends(rules);
          undo_quark(rules);
          change_layouts_0_21(rules);
          rules.loader.creates_biases = false;
        },
};

}  // namespace mxfp4
