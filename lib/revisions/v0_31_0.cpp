// vLLM 0.31.0: monolithic kernels refuse hash routing (fused_moe/modular_kernel.py); AITER's Triton
// kernels refuse expert parallelism; TRITON_UNFUSED is padded less before CDNA4.
#include <algorithm>
#include <cctype>
#include <string>

#include "lib/layouts/all.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/humming_kernels.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/releases.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

// Only the generic method tells the rounding function its activation. gfx950 alone is CDNA4.
bool unfused_before_cdna4(const Target& t) {
  return t.backend == TRITON_UNFUSED && t.platform == Platform::kRocm &&
         t.family == Family::kGeneric && (t.activation == "silu" || t.activation == "situ") &&
         !t.arch.starts_with("gfx950");
}

// vllm/_aiter_ops.py, _resolve_situv2_activation; the default is "a4w4".
bool situ_a8w4(const Target& t) {
  const auto found = t.env.find("VLLM_ROCM_USE_AITER_MOE_SITUV2");
  if (!situ(t) || found == t.env.end()) return false;
  std::string value = found->second;
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
  return value == "a8w4";
}

// One variable with three values in place of a switch.
void rename_situ_switch(RuleSet& rules) {
  const auto row = std::ranges::find(rules.layouts, &kAiterBf16SituA8w4Layout, &LayoutRow::layout);
  row->when = {"activation situ, VLLM_ROCM_USE_AITER_MOE_SITUV2=a8w4", situ_a8w4};
}

// cmake/external_projects/triton_kernels.cmake of the source package takes triton_kernels for ROCm
// from ROCm/triton, commit 669b31acc, in 0.31.0 to 0.33.0; 0.30.0 took 0f380657d, of the 3.6 branch.
// The classes of 3.8 put the scales in another order. CUDA builds keep 3.5.1. On gfx1250 the generic
// converter gives AITER_MXFP4_BF16 this layout too, from 0.33.0 on with scales that AITER shuffled.
void refuse_triton_on_rocm(RuleSet& rules) {
  constexpr std::string_view kReason =
      "the ROCm builds of this release take triton_kernels 3.8 from ROCm/triton (commit "
      "669b31acc), "
      "which no package on PyPI carries: its bytes are not verified";
  for (const Backend backend : {TRITON, TRITON_UNFUSED, AITER_MXFP4_FP8}) {
    edit::drop_layouts(rules, backend, kCdna4);
  }
  for (const Family family : {Family::kGptOss, Family::kGeneric}) {
    edit::drop_layouts(rules, AITER_TRITON_MXFP4_BF16, family);
  }
  edit::drop_layouts(rules, AITER_MXFP4_BF16, kGfx1250);
  edit::add_layouts(rules, {{AITER_MXFP4_BF16, Family::kGeneric, kGfx1250, nullptr, kReason},
                            {TRITON, {}, kRocm, nullptr, kReason},
                            {TRITON_UNFUSED, {}, kRocm, nullptr, kReason},
                            {AITER_TRITON_MXFP4_BF16, {}, kRocm, nullptr, kReason},
                            {AITER_MXFP4_FP8, {}, kRocm, nullptr, kReason}});
}

}  // namespace

const Release kRelease0310 = {
    .name = "vllm-0.31.0",
    .version = "0.31.0",
    .date = "2026-10-05",
    .commit = "db9527a46",
    .pins = {{"flashinfer", "0.7.0.post1"}, {"humming-kernels", "0.1.16"}},
    .changes = "hash routing; the moonep all-to-all; TRITON_UNFUSED rounds to 128 before CDNA4",
    .executed = "14,665 of 14,665 decisions with traces; on a CPU, bytes of layouts",
    .base = &kRelease0300,
    .apply =
        [](RuleSet& rules) {
          for (ExpertClass& row : rules.classes) {
            if (!row.monolithic) continue;
            edit::add_check_after(row, "parallel",
                                  {"hash routing", none_of({hash_routing()}),
                                   "kernel does not support hash routing"});
          }
          for (const std::string_view name :
               {"AiterW4A16ExpertsMonolithic", "AiterW4A8ExpertsMonolithic"}) {
            edit::condition(rules, name, "parallel") = tensor_parallel_only();
          }
          rename_situ_switch(rules);
          humming_kernels_0_1_16(rules);
          refuse_triton_on_rocm(rules);
          edit::insert_after(rules.all2all_backends, "mori_low_latency",
                             std::string_view("moonep"));
          // A score bias with sigmoid and renormalizing: the scaling factor is not asked any more.
          for (RoutingRow& row : rules.routing) {
            if (row.method != "MiniMax2") continue;
            row.text = "score bias, sigmoid, renormalize";
            row.holds = [](const RoutingFacts& f) {
              return f.score_bias && f.scoring == "sigmoid" && f.renormalize;
            };
          }
          rules.rounding.insert(
              std::ranges::find(rules.rounding, "rocm",
                                [](const RoundingRow& row) { return row.when.text; }),
              {{"TRITON_UNFUSED on rocm before CDNA4, generic, silu or situ", unfused_before_cdna4},
               128,
               128});
        },
};

}  // namespace mxfp4
