// The tables of SGLang that v0_5_16.cpp gathers into one value, and the rows that later releases
// put in their place. SGLang has no oracle: a model's override sets --moe-runner-backend where it
// is "auto", then the method class of the checkpoint takes a path by that name and the device. So
// every caller chooses by itself, and its DirectRows are the paths, in the order in which SGLang
// tests them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/oracle/rule_set.hpp"

namespace mxfp4::sglang {

// The texts of callers, by which releases name them.
inline constexpr std::string_view kGptOssText = "quant_method mxfp4, model_type gpt_oss";
inline constexpr std::string_view kFp4ExpertsText =
    "quant_method fp8 or deepseek_v4_fp8, model_type deepseek_v4, FP4 experts";
inline constexpr std::string_view kQuarkText = "Quark fp4 weights";

// --- paths.cpp: conditions and rows ---

[[nodiscard]] Condition runner_is(std::string_view name);
[[nodiscard]] Condition on_cuda(int major);  // capability major.x
// ROCm with SGLANG_USE_AITER as mxfp4.py reads it: 1, true.
[[nodiscard]] Condition with_aiter();
// A variable as srt/environ.py reads it: true, 1, yes, y or false, 0, no, n, whatever the letters'
// case; any other text is its default.
[[nodiscard]] bool reads_as_true(std::string_view value, bool otherwise);

[[nodiscard]] DirectRow path(Condition when, Backend backend, std::string_view name);
// The engine itself ends with this error.
[[nodiscard]] DirectRow stops(Condition when, std::string_view path, Refusal refusal);
[[nodiscard]] DirectRow bf16_upcast(Condition when);
[[nodiscard]] DirectRow not_executed_a2a();
// Puts a refusal of --dp-size in front of every caller's paths; once.
void refuse_data_parallel(RuleSet& rules);
[[nodiscard]] DirectRow rocm_without_mx();
[[nodiscard]] DirectRow dequantized_to_fp8();
[[nodiscard]] DirectRow dequant_and_runner();

// The rows of I that a rank's buffers have before they are padded, and those that gpt-oss's loader
// cuts for it: whole blocks of scales.
struct GptOssRows {
  int64_t buffer = 0, loaded = 0;
};
// Empty where the whole size is not known.
[[nodiscard]] std::optional<GptOssRows> gpt_oss_rows(const Question& question);
// The loader stops: without triton_kernels nothing pads the buffers of the paths behind this row.
[[nodiscard]] DirectRow slices_overflow();

// The user names triton_kernel, or SGLang sets it for gpt-oss.
[[nodiscard]] Condition asks_triton();
// Mxfp4MoEMethod of gpt-oss, of 0.5.16.
[[nodiscard]] std::vector<DirectRow> gpt_oss_paths();
// Fp8Config with FP4 experts: the classes that it takes, where the model's override gives
// flashinfer_mxfp4 under this condition; fp4_experts_paths() are the paths of 0.5.16.
[[nodiscard]] std::vector<DirectRow> fp4_experts_classes(Condition by_default);
[[nodiscard]] std::vector<DirectRow> fp4_experts_paths();
// Mxfp4MoEMethod of compressed-tensors, from 0.5.20 on. Only Kimi-K3's class says that w13 is
// stored in halves.
[[nodiscard]] std::vector<DirectRow> compressed_tensors_paths(bool kimi);
[[nodiscard]] std::vector<DirectRow> quark_paths();

// --- serving.cpp ---

[[nodiscard]] std::vector<CallerRow> callers();
[[nodiscard]] CallerRow compressed_tensors_caller(bool kimi);
[[nodiscard]] std::vector<LoadNoteRow> load_notes();
[[nodiscard]] std::vector<ParameterNameRow> parameter_names();

// --- sizes.cpp ---

inline constexpr std::byte kScaleOfOne{0x7F};  // 1.0 as E8M0

inline constexpr std::string_view kNotExecuted =
    "the bytes of this path of SGLang were not executed: no layout is known";

[[nodiscard]] std::vector<RoundingRow> rounding();
[[nodiscard]] std::vector<LayoutRow> layouts();

}  // namespace mxfp4::sglang
