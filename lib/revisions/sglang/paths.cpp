// The paths of SGLang 0.5.16's method classes, in the order in which these test them:
// srt/arg_groups/overrides.py (_gpt_oss_overrides, _deepseek_v4_sm120_moe),
// srt/layers/quantization/ mxfp4.py (Mxfp4Config, Mxfp4MoEMethod), fp8.py
// (Fp8Config.get_quant_method, Fp8MoEMethod.process_weights_after_loading_block_quant),
// mxfp4_flashinfer_trtllm_moe.py, mxfp4_flashinfer_cutlass_moe.py, mxfp4_marlin_moe.py.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/oracle/predicates.hpp"
#include "lib/revisions/sglang/tables.hpp"

namespace mxfp4::sglang {
namespace {

using enum Backend;

constexpr std::string_view kMxfp4Method = "Mxfp4MoEMethod";

DirectRow refused(Condition when, std::string_view path, std::string_view type,
                  std::string_view text) {
  return {.when = std::move(when),
          .backend = {},
          .experts_class = path,
          .note = "",
          .refusal = {type, text}};
}

Condition auto_resolves(Condition when) { return all_of({runner_is("auto"), std::move(when)}); }

Condition variable_on(std::string_view name, bool when_unset) {
  return variable(name, fmt::format("{} (unset: {})", name, when_unset ? "on" : "off"), when_unset,
                  [=](std::string_view value) { return reads_as_true(value, when_unset); });
}

// ROCm with SGLANG_USE_AITER, as srt/environ.py reads it.
Condition aiter_by_environ() {
  return all_of({platform_is(Platform::kRocm), variable_on("SGLANG_USE_AITER", false)});
}

}  // namespace

Condition runner_is(std::string_view name) { return moe_backend_is(name); }

Condition on_cuda(int major) {
  return all_of({platform_is(Platform::kCuda), capability_family(major)});
}

Condition with_aiter() {
  return all_of({platform_is(Platform::kRocm), env_switch("SGLANG_USE_AITER", false)});
}

bool reads_as_true(std::string_view value, bool otherwise) {
  std::string text(value);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  if (text == "true" || text == "1" || text == "yes" || text == "y") return true;
  if (text == "false" || text == "0" || text == "no" || text == "n") return false;
  return otherwise;
}

DirectRow path(Condition when, Backend backend, std::string_view name) {
  return {.when = std::move(when), .backend = backend, .experts_class = name, .note = ""};
}

DirectRow stops(Condition when, std::string_view path, Refusal refusal) {
  return refused(std::move(when), path, refusal.type, refusal.text);
}

DirectRow bf16_upcast(Condition when) {
  return refused(std::move(when), "BF16 experts", "",
                 "SGLang upcasts the experts to BF16 while it loads, four times their memory: no "
                 "MXFP4 is left to convert; --moe-runner-backend decides it");
}

DirectRow not_executed_a2a() {
  return refused(all2all_in_use(), "kernels behind an all-to-all", "",
                 "with --moe-a2a-backend {all2all} SGLang prepares the experts otherwise, and no "
                 "layout is known for that");
}

void refuse_data_parallel(RuleSet& rules) {
  // srt/distributed/parallel_state.py: groups of experts are made of the ranks of --tp-size.
  const DirectRow row =
      refused(dp_above_one(), "none", "",
              "SGLang cuts experts by --tp-size and expert parallelism only, its data-parallel "
              "ranks and replicas hold the same: leave --dp-size out");
  for (CallerRow& caller : rules.callers) {
    if (caller.direct.empty() || caller.direct.front().refusal.text == row.refusal.text) continue;
    caller.direct.insert(caller.direct.begin(), row);
  }
}

DirectRow rocm_without_mx() {
  return refused(all_of({platform_is(Platform::kRocm), none_of({arch_contains("gfx95")})}), "none",
                 "ValueError", "Current platform {arch} not support mxfp4 computation");
}

std::optional<GptOssRows> gpt_oss_rows(const Question& question) {
  const std::optional<int64_t> whole = question.deployment.intermediate_size;
  if (!whole) return std::nullopt;
  constexpr int64_t kScaleBlock = 32;
  const int64_t ranks = question.parallel.tp_size;
  const int64_t blocks = *whole / kScaleBlock;
  return GptOssRows{*whole / ranks, (blocks + ranks - 1) / ranks * kScaleBlock};
}

DirectRow slices_overflow() {
  const Condition more{"more rows loaded than I / ranks", [](const Question& q) {
                         const auto rows = gpt_oss_rows(q);
                         return rows && rows->loaded > rows->buffer;
                       }};
  return stops(all_of({none_of({package("triton_kernels"), on_cuda(10)}), more}), kMxfp4Method,
               {"RuntimeError",
                "SGLang stops while it loads: its loader cuts more rows for a rank than buffers "
                "hold that are not padded for triton_kernels"});
}

Condition asks_triton() {
  return any_of(
      {runner_is("triton_kernel"),
       auto_resolves(all_of({none_of({aiter_by_environ(), expert_parallel(), arch_contains("amx")}),
                             package("triton_kernels")}))});
}

std::vector<DirectRow> gpt_oss_paths() {
  const Condition sm90_or_sm120 = any_of({on_cuda(9), on_cuda(12)});
  return {
      rocm_without_mx(),
      not_executed_a2a(),
      path(any_of({all_of({runner_is("marlin"), sm90_or_sm120}), auto_resolves(on_cuda(12))}),
           MARLIN, "Mxfp4MoEMethod, marlin"),
      stops(runner_is("marlin"), kMxfp4Method,
            {"RuntimeError", "MXFP4 Marlin requires SM90 or SM120."}),
      path(any_of(
               {all_of({runner_is("flashinfer_mxfp4"), on_cuda(10)}), auto_resolves(on_cuda(10))}),
           FLASHINFER_TRTLLM_MXFP4_MXFP8, "Mxfp4MoEMethod, flashinfer_mxfp4 (TRT-LLM)"),
      path(all_of({runner_is("flashinfer_mxfp4"), on_cuda(9)}), FLASHINFER_CUTLASS_MXFP4_BF16,
           "Mxfp4MoEMethod, flashinfer_mxfp4 (CUTLASS)"),
      stops(runner_is("flashinfer_mxfp4"), kMxfp4Method,
            {"NotImplementedError", "moe_runner_backend=flashinfer_mxfp4 requires SM90 or SM100."}),
      path(with_aiter(), AITER_MXFP4_BF16, "Mxfp4MoEMethod, AITER"),
      slices_overflow(),
      path(asks_triton(), TRITON, "Mxfp4MoEMethod, triton_kernel"),
      path(all_of({platform_is(Platform::kCpu), arch_contains("amx")}), CPU, "Mxfp4MoEMethod, AMX"),
      bf16_upcast(always()),
  };
}

DirectRow dequantized_to_fp8() {
  return refused(
      all_of({variable_on("SGLANG_DSV4_FP4_DEQUANT", false), runner_is("auto")}), "FP8 experts", "",
      "SGLANG_DSV4_FP4_DEQUANT: SGLang makes the experts FP8 while it loads: no MXFP4 is left to "
      "convert");
}

DirectRow dequant_and_runner() {
  return refused(variable_on("SGLANG_DSV4_FP4_DEQUANT", false), "none", "AssertionError",
                 "--moe-runner-backend {moe_backend} is not compatible with "
                 "SGLANG_DSV4_FP4_DEQUANT=1");
}

// Behind the choice of the model's override: the classes that Fp8Config takes.
std::vector<DirectRow> fp4_experts_classes(Condition by_default) {
  const Condition sm90_or_sm120 = any_of({on_cuda(9), on_cuda(12)});
  const Condition flashinfer =
      any_of({runner_is("flashinfer_mxfp4"), auto_resolves(std::move(by_default))});
  return {
      path(all_of({runner_is("marlin"), sm90_or_sm120}), MARLIN, "Mxfp4MarlinMoEMethod"),
      stops(runner_is("marlin"), "Mxfp4MarlinMoEMethod",
            {"RuntimeError", "MXFP4 Marlin requires SM90 or SM120."}),
      path(runner_is("humming"), HUMMING, "Mxfp4HummingMoEMethod"),
      path(all_of({flashinfer, on_cuda(9)}), FLASHINFER_CUTLASS_MXFP4_BF16,
           "Mxfp4FlashinferCutlassMoEMethod"),
      path(all_of({flashinfer, on_cuda(12)}), FLASHINFER_CUTLASS_MXFP4_MXFP8,
           "Mxfp4FlashinferCutlassMoEMethod"),
      path(all_of({flashinfer, platform_is(Platform::kCuda)}), FLASHINFER_TRTLLM_MXFP4_MXFP8,
           "Mxfp4FlashinferTrtllmMoEMethod"),
      stops(runner_is("flashinfer_mxfp4"), "Mxfp4FlashinferTrtllmMoEMethod",
            {"NameError",
             "SGLang's class for TRT-LLM imports FlashInfer on CUDA only: loading stops"}),
      path(aiter_by_environ(), AITER_MXFP4_BF16, "Fp8MoEMethod, AITER"),
      refused(always(), "Fp8MoEMethod", "",
              "SGLang takes its FP8 kernels here, which do not read FP4 experts: "
              "--moe-runner-backend names one that does, where the device has one"),
  };
}

std::vector<DirectRow> fp4_experts_paths() {
  // The override for SM120 looks at nothing else.
  std::vector<DirectRow> rows = {not_executed_a2a()};
  DirectRow dequantized = dequantized_to_fp8();
  dequantized.when = all_of({dequantized.when, none_of({on_cuda(12)})});
  rows.push_back(std::move(dequantized));
  rows.push_back(dequant_and_runner());
  for (DirectRow& row : fp4_experts_classes(on_cuda(12))) rows.push_back(std::move(row));
  return rows;
}

std::vector<DirectRow> compressed_tensors_paths(bool kimi) {
  std::vector<DirectRow> rows = {not_executed_a2a()};
  const Condition sm90_up = any_of({on_cuda(9), on_cuda(10), on_cuda(12)});
  rows.push_back(path(all_of({runner_is("marlin"), sm90_up}), MARLIN, "Mxfp4MoEMethod, marlin"));
  rows.push_back(
      stops(runner_is("marlin"), kMxfp4Method, {"RuntimeError", "MXFP4 Marlin requires SM90+."}));
  rows.push_back(path(runner_is("deep_gemm"), DEEPGEMM_MXFP4, "Mxfp4MoEMethod, deep_gemm"));
  const Condition flashinfer =
      kimi ? any_of({runner_is("flashinfer_mxfp4"),
                     auto_resolves(all_of(
                         {platform_is(Platform::kCuda), arch_in({"sm100", "sm103", "sm107"})}))})
           : runner_is("flashinfer_mxfp4");
  rows.push_back(stops(all_of({flashinfer, none_of({sm90_up})}), kMxfp4Method,
                       {"NotImplementedError",
                        "moe_runner_backend=flashinfer_mxfp4 requires SM90, SM100, or SM120."}));
  // These read w13 as pairs of rows, unless the model's class says that it is stored in halves; the
  // one for SM120 always does.
  constexpr std::string_view kPairs =
      "SGLang takes the halves of w13 for interleaved rows here, and the experts are wrong";
  const Condition mistaken =
      kimi ? all_of({flashinfer, on_cuda(12)}) : any_of({flashinfer, with_aiter()});
  rows.push_back(refused(
      mistaken, kimi ? "Mxfp4MoEMethod, flashinfer_mxfp4 (CUTLASS)" : kMxfp4Method, "", kPairs));
  rows.push_back(path(all_of({flashinfer, on_cuda(10)}), FLASHINFER_TRTLLM_MXFP4_MXFP8,
                      "Mxfp4MoEMethod, flashinfer_mxfp4 (TRT-LLM)"));
  rows.push_back(path(all_of({flashinfer, on_cuda(9)}), FLASHINFER_CUTLASS_MXFP4_BF16,
                      "Mxfp4MoEMethod, flashinfer_mxfp4 (CUTLASS)"));
  rows.push_back(refused(all_of({with_aiter(), none_of({activation_in({"situ"})})}), kMxfp4Method,
                         "", "no layout is known for this path with another activation than situ"));
  rows.push_back(path(with_aiter(), AITER_MXFP4_BF16, "Mxfp4MoEMethod, AITER"));
  rows.push_back(stops(all_of({runner_is("triton_kernel"), platform_is(Platform::kRocm)}),
                       kMxfp4Method,
                       {"AttributeError",
                        "'FusedMoE' object has no attribute 'w13_weight_bias': SGLang makes biases "
                        "of zeros for this path, but not on ROCm"}));
  rows.push_back(path(runner_is("triton_kernel"), TRITON, "Mxfp4MoEMethod, triton_kernel"));
  rows.push_back(path(platform_is(Platform::kXpu), XPU, "Mxfp4MoEMethod, XPU"));
  rows.push_back(path(all_of({platform_is(Platform::kCpu), arch_contains("amx")}), CPU,
                      "Mxfp4MoEMethod, AMX"));
  rows.push_back(bf16_upcast(always()));
  return rows;
}

std::vector<DirectRow> quark_paths() {
  return {
      refused(none_of({platform_is(Platform::kRocm)}), "none", "NotImplementedError",
              "SGLang serves Quark's MXFP4 experts with AITER only"),
      {.when = always(), .backend = {}, .experts_class = "AITER", .note = ""},
  };
}

}  // namespace mxfp4::sglang
