// vLLM 0.31.0: monolithic kernels refuse hash routing (fused_moe/modular_kernel.py); AITER's Triton
// kernels refuse expert parallelism; TRITON_UNFUSED is padded less before CDNA4.
#include <algorithm>
#include <cctype>
#include <string>

#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/humming_layouts.hpp"
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

// Only the generic method tells the rounding function its activation. Only gfx950 is CDNA4.
bool unfused_before_cdna4(const Target& t) {
  return t.backend == TRITON_UNFUSED && t.platform == Platform::kRocm &&
         t.family == Family::kGeneric && (t.activation == "silu" || t.activation == "situ") &&
         !t.arch.starts_with("gfx950");
}

// vllm/_aiter_ops.py, _resolve_situv2_activation; the default is "a4w4".
bool is_a8w4(std::string_view value) {
  std::string text(value);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text == "a8w4";
}

// One variable with three values in place of a switch.
void rename_situ_switch(RuleSet& rules) {
  edit::replace_condition(rules, AITER_MXFP4_BF16, kSituA8w4Switch,
                          {"activation situ, VLLM_ROCM_USE_AITER_MOE_SITUV2=a8w4",
                           situ,
                           {{{"VLLM_ROCM_USE_AITER_MOE_SITUV2", is_a8w4}}}});
}

// AITER's Triton kernel is ROCm only. On gfx950 with up to two ranks, scales have their own order.
bool rocm_without_order(const Target& t) {
  return on_rocm(t) && arch_known(t) && !gfx950_in_small_world(t);
}
constexpr TargetCondition kPlainScales{"other ROCm, gfx950 with a larger world",
                                       rocm_without_order};

// cmake/external_projects/triton_kernels.cmake of the source package takes triton_kernels for ROCm
// from ROCm/triton, commit 669b31acc, in 0.31.0 to 0.33.0; 0.30.0 took 0f380657d, of the 3.6
// branch. With 3.8 _swizzle_mxfp4 asks for other layouts: plain scales are transposed, gfx950's are
// padded. CUDA builds keep 3.5.1. On gfx1250 the generic converter gives AITER_MXFP4_BF16
// these too.
void take_triton_kernels_3_8(RuleSet& rules) {
  constexpr Family kGptOss = Family::kGptOss;
  constexpr Family kGeneric = Family::kGeneric;
  constexpr Backend kAiter = AITER_TRITON_MXFP4_BF16;
  for (const Backend backend : {TRITON, TRITON_UNFUSED}) edit::drop_layouts(rules, backend, kCdna4);
  for (const Family family : {kGptOss, kGeneric}) edit::drop_layouts(rules, kAiter, family);
  edit::drop_layouts(rules, AITER_MXFP4_FP8, kCdna4);
  edit::drop_layouts(rules, AITER_MXFP4_BF16, kGfx1250);
  edit::add_layouts(rules, {{TRITON, kGptOss, kCdna4, &kTriton38Cdna4Layout},
                            {TRITON, kGptOss, kPlainScales, &kTriton38StridedLayout},
                            {TRITON, kGeneric, kCdna4, &kTriton38Cdna4KInterleavedLayout},
                            {TRITON, kGeneric, kPlainScales, &kTriton38StridedKInterleavedLayout},
                            {TRITON_UNFUSED, {}, kCdna4, &kTriton38Cdna4Layout},
                            {TRITON_UNFUSED, {}, kPlainScales, &kTriton38StridedLayout},
                            {kAiter, kGptOss, kCdna4, &kTriton38Cdna4Layout},
                            {kAiter, kGptOss, kPlainScales, &kTriton38StridedLayout},
                            {kAiter, kGeneric, kCdna4, &kTriton38Cdna4RowInterleavedLayout},
                            {kAiter, kGeneric, kPlainScales, &kTriton38StridedRowInterleavedLayout},
                            {AITER_MXFP4_FP8, {}, kCdna4, &kAiterW4a8Triton38Cdna4Layout},
                            {AITER_MXFP4_FP8, {}, kPlainScales, &kAiterW4a8Triton38StridedLayout},
                            {AITER_MXFP4_BF16, kGeneric, kGfx1250, &kTriton38StridedLayout}});
}

constexpr std::string_view kNo4BitBelow12 =
    "Humming has 4-bit activations from capability 12.0 on: loading stops with ValueError";
constexpr std::string_view kGrouped =
    "this Humming has no FP8 activations with F32 scales by group for MXFP4 weights: loading stops "
    "with ValueError";

// humming-kernels 0.1.16: its converter asks whether its kernels can run.
void change_humming_0_31(RuleSet& rules) {
  using namespace humming;
  std::vector<LayoutRow> rows = refused_when_loading();
  rows.insert(
      rows.end(),
      {refused({"FP8 activations with F32 scales by group",
                [](const Target& t) {
                  return is_fp8_group32(t) || is_fp8_group64(t) || is_fp8_group128(t);
                }},
               kGrouped, "ValueError"),
       refused({"4-bit activations, CUDA capability below 12.0", fp4_below_12}, kNo4BitBelow12,
               "ValueError"),
       packed(kInt8, kHummingInt8Layout), packed(kFp8On12, kHummingMxmmaFp8Layout),
       packed(kFp8Below12, kHummingFp8Layout), packed(kFp4On12, kHummingMxmmaFp4TilesLayout),
       packed(kNative, kHummingMmaNativeLayout), packed(kWgmma, kHummingWgmmaLayout),
       packed(kMma, kHummingMmaLayout)});
  replace_rows(rules, std::move(rows));
}

// models/deepseek_v4/nvidia/model.py: DeepSeek's router has to normalize its weights; nothing
// is padded.
void require_normalized_mega_moe(RuleSet& rules) {
  edit::remove(rules.rounding, "DEEP_GEMM_MEGA_MOE, any activation but situ");
  edit::add_after(
      edit::row(rules.model_backends, "DeepseekV4MegaMoEExperts").requirements, "scoring",
      {"norm_topk_prob",
       {"norm_topk_prob", [](const Question& q) { return q.deployment.norm_topk_prob; }},
       {"NotImplementedError", "DeepSeek V4 MegaMoE requires normalized top-k probabilities."}});
}

// models/deepseek_v4/amd/model.py, _fuse_shared_experts_enabled: stops before it looks at the
// checkpoint.
void refuse_fusion_with_data_parallel(RuleSet& rules) {
  rules.fused_shared.insert(
      rules.fused_shared.begin(),
      {.model_types = {"deepseek_v4", "deepseek_v41"},
       .when = all_of({fuses_shared_experts_by_variable(), dp_above_one()}),
       .if_mxfp4 = false,
       .stops =
           "DeepSeek-V4 fused shared experts (VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS=1) are "
           "not supported with data parallelism (data_parallel_size > 1)"});
}

}  // namespace

const Release kRelease0310 = {
    .name = "vllm-0.31.0",
    .date = "2026-10-05",
    .commit = "db9527a46",
    .pins = {{"flashinfer", "0.7.0.post1"},
             {"humming-kernels", "0.1.16"},
             {"ROCm/triton", "669b31acc", Platform::kRocm}},
    .changes = "hash routing; the moonep all-to-all; TRITON_UNFUSED rounds to 128 before CDNA4",
    .apply =
        [](RuleSet& rules) {
          const Condition hash_routing{"hash routing",
                                       [](const Question& q) { return q.deployment.hash_routing; }};
          for (ExpertClass& row : rules.classes) {
            if (!row.monolithic) continue;
            edit::add_after(
                row.checks, "parallel",
                {"hash routing", none_of({hash_routing}), "kernel does not support hash routing"});
          }
          for (const std::string_view name :
               {"AiterW4A16ExpertsMonolithic", "AiterW4A8ExpertsMonolithic"}) {
            edit::condition(rules, name, "parallel") =
                none_of({expert_parallel(), eplb(), dp_above_one()});
          }
          rename_situ_switch(rules);
          change_humming_0_31(rules);
          take_triton_kernels_3_8(rules);
          edit::add_after(rules.all2all_backends, "mori_low_latency", "moonep");
          // The scaling factor is not asked any more.
          edit::row(rules.routing, "score bias, sigmoid, renormalize, routed scaling factor 1") = {
              [](const RoutingFacts& f) {
                return f.score_bias && f.scoring == "sigmoid" && f.renormalize;
              },
              "score bias, sigmoid, renormalize", "MiniMax2"};
          edit::add_before(
              rules.rounding, "rocm",
              {{"TRITON_UNFUSED on rocm before CDNA4, generic, silu or situ", unfused_before_cdna4},
               128,
               128});
          require_normalized_mega_moe(rules);
          refuse_fusion_with_data_parallel(rules);
          // models/deepseek_v4/quant_config.py: Quark's checkpoints are Quark's again.
          edit::remove(rules.callers, "Quark fp4 weights, model_type deepseek_v4");
        },
};

}  // namespace mxfp4
