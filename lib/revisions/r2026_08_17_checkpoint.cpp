// The method classes of vLLM 017e9f4448 by checkpoint, the backends that their converters take, and
// the faults after a successful selection: quantization/{mxfp4,quark/quark_moe}.py,
// quantization/{compressed_tensors,inc}/, oracle/mxfp4.py.
#include <algorithm>
#include <array>

#include "lib/core/model_config.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/r2026_08_17_tables.hpp"

namespace mxfp4::r2026_08_17 {
namespace {

using enum Backend;

bool is_method(const ModelConfig& config, std::initializer_list<std::string_view> names) {
  return config.quantization && std::ranges::find(names, config.quantization->name) != names.end();
}

bool is_mxfp4(const ModelConfig& config) { return is_method(config, {"mxfp4", "gpt_oss_mxfp4"}); }

bool is_deepseek_v4(const ModelConfig& config) { return config.model_type == "deepseek_v4"; }

bool is_quark(const ModelConfig& config, std::string_view activation) {
  return is_method(config, {"quark"}) && config.quantization->activation == activation;
}

CallerRow gpt_oss_caller() {
  return {.text = "quant_method mxfp4, model_type gpt_oss",
          .holds =
              [](const ModelConfig& c) {
                return is_mxfp4(c) && (c.model_type == "gpt_oss" || c.original_gpt_oss);
              },
          .method = "GptOssMxfp4MoEMethod",
          .minimum_capability = 80,
          .alpha = 1.702,
          .beta = 1.0,
          .clamp_limit = 7.0};
}

CallerRow generic_caller() {
  return {.text = "quant_method mxfp4, any other model_type",
          .holds = is_mxfp4,
          .method = "Mxfp4MoEMethod",
          .selector = Selector::kDeepseekV4,
          .family = Family::kGeneric,
          .minimum_capability = 80,
          .model_clamp_limit = true};
}

CallerRow deepseek_v4_caller() {
  CallerRow row = generic_caller();
  row.text = "quant_method fp8 or deepseek_v4_fp8, model_type deepseek_v4, expert_dtype fp4";
  row.holds = [](const ModelConfig& c) {
    return is_method(c, {"fp8", "deepseek_v4_fp8"}) && is_deepseek_v4(c) &&
           (c.quantization->expert_dtype.empty() || c.quantization->expert_dtype == "fp4");
  };
  row.minimum_capability = 75;
  return row;
}

CallerRow quark_deepseek_v4_caller() {
  CallerRow row = deepseek_v4_caller();
  row.text = "Quark fp4 weights, model_type deepseek_v4";
  row.holds = [](const ModelConfig& c) { return is_method(c, {"quark"}) && is_deepseek_v4(c); };
  row.scale_fill = std::byte{0};
  return row;
}

CallerRow quark_caller() {
  return {.text = "Quark fp4 weights, bf16 activations",
          .holds = [](const ModelConfig& c) { return is_quark(c, ""); },
          .method = "QuarkOCP_MX_MoEMethod",
          .first_class_only = true,
          .gives_layer = false,
          .model_clamp_limit = true};
}

CallerRow quark_fp8_caller() {
  CallerRow row = quark_caller();
  row.text = "Quark fp4 weights, static fp8 activations";
  row.holds = [](const ModelConfig& c) { return is_quark(c, "fp8_per_tensor_static"); };
  row.model_activation = "fp8_per_tensor_static";
  return row;
}

CallerRow quark_mxfp4_caller() {
  CallerRow row = quark_caller();
  row.text = "Quark fp4 weights, dynamic fp4 activations";
  row.holds = [](const ModelConfig& c) { return is_quark(c, "mxfp4"); };
  row.model_activation = "mxfp4";
  return row;
}

CallerRow quark_fp6_caller() {
  CallerRow row = quark_caller();
  row.text = "Quark fp4 weights, fp6 activations";
  row.holds = [](const ModelConfig& c) { return is_quark(c, "fp6"); };
  row.direct = {{always(), EMULATION, "OCP_MXQuantizationEmulationTritonExperts",
                 "fp6 activations: the engine emulates without asking the oracle"}};
  return row;
}

// The engine rewrites this model's quant_method to mxfp4.
CallerRow kimi_k3_caller() {
  CallerRow row = generic_caller();
  row.text = "compressed-tensors mxfp4-pack-quantized, model_type kimi_k3";
  row.holds = [](const ModelConfig& c) {
    return is_method(c, {"compressed-tensors"}) && c.model_type.starts_with("kimi_k3");
  };
  return row;
}

DirectRow cutlass_directly() {
  return {
      all_of({platform_is(Platform::kCuda), capability_at_least(10, 0), capability_below(12, 0)}),
      {},
      "CUTLASS MXFP4xMXFP4",
      "this method bypasses the oracle: from capability 10.0 to below 12.0 it runs CUTLASS "
      "MXFP4xMXFP4 experts with their own preparation"};
}

DirectRow marlin_directly() {
  return {always(), MARLIN, "MarlinExperts",
          "this method bypasses the oracle: Marlin's own preparation, no rounding; moe_backend and "
          "override are ignored"};
}

DirectRow xpu_directly() {
  return {platform_is(Platform::kXpu), XPU, "XPUExpertsMxFp4",
          "this method bypasses the oracle: on xpu the tensors stay as they are loaded"};
}

CallerRow compressed_tensors_caller() {
  return {.text = "compressed-tensors, 4-bit float, group 32, symmetric",
          .holds = [](const ModelConfig& c) { return is_method(c, {"compressed-tensors"}); },
          .method = "CompressedTensorsW4A4Mxfp4MoEMethod",
          .family = Family::kGeneric,
          .direct = {cutlass_directly(), xpu_directly(), marlin_directly()},
          .rounds = false};
}

CallerRow auto_round_caller() {
  CallerRow row = compressed_tensors_caller();
  row.text = "AutoRound (INC) mx_fp, 4 bits, group 32";
  row.holds = [](const ModelConfig& c) { return is_method(c, {"auto-round", "inc"}); };
  row.method = "INCMxfp4MoEMethod";
  return row;
}

std::string_view chosen_first_class(const LoadFacts& f) {
  const BackendRow* row = find_backend_row(f.question.rules, *f.decision.backend);
  return row == nullptr || row->classes.empty() ? "" : row->classes.front();
}

bool chose(const LoadFacts& f, std::initializer_list<Backend> backends) {
  return f.decision.backend && std::ranges::find(backends, *f.decision.backend) != backends.end();
}

bool no_eplb(const LoadFacts& f) {
  constexpr std::array<std::string_view, 3> kRefuse = {
      "GptOssMxfp4MoEMethod", "CompressedTensorsW4A4Mxfp4MoEMethod", "INCMxfp4MoEMethod"};
  return f.caller != nullptr && f.question.parallel.enable_eplb &&
         std::ranges::find(kRefuse, f.caller->method) != kRefuse.end();
}

}  // namespace

std::span<const CallerRow> callers() {
  static const std::array kRows = {
      gpt_oss_caller(),     generic_caller(),
      deepseek_v4_caller(), quark_deepseek_v4_caller(),
      quark_caller(),       quark_fp8_caller(),
      quark_mxfp4_caller(), quark_fp6_caller(),
      kimi_k3_caller(),     compressed_tensors_caller(),
      auto_round_caller(),
  };
  return kRows;
}

std::span<const ConverterRow> converters() {
  constexpr Family kGptOss = Family::kGptOss;
  constexpr Family kGeneric = Family::kGeneric;
  static constexpr std::array kRows = {
      ConverterRow{NONE, kGptOss, false},
      ConverterRow{DEEPGEMM_MXFP4, kGptOss},
      ConverterRow{FLASHINFER_TRTLLM_MXFP4_MXFP8, kGptOss, true, true},
      ConverterRow{FLASHINFER_TRTLLM_MXFP4_BF16, kGptOss, true, true},
      ConverterRow{FLASHINFER_CUTLASS_MXFP4_MXFP8, kGptOss, true, true},
      ConverterRow{FLASHINFER_CUTLASS_MXFP4_BF16, kGptOss, true, true},
      ConverterRow{BATCHED_MARLIN, kGptOss},
      ConverterRow{MARLIN, kGptOss},
      ConverterRow{AITER_MXFP4_BF16, kGptOss},
      ConverterRow{AITER_MXFP4_FP8, kGptOss, true, false, true},
      ConverterRow{AITER_MXFP4_MXFP4, kGptOss},
      ConverterRow{TRITON, kGptOss},
      ConverterRow{TRITON_UNFUSED, kGptOss},
      ConverterRow{XPU, kGptOss},
      ConverterRow{CPU, kGptOss},
      ConverterRow{EMULATION, kGptOss},
      ConverterRow{HUMMING, kGptOss},
      ConverterRow{NONE, kGeneric, false},
      ConverterRow{DEEPGEMM_MXFP4, kGeneric},
      ConverterRow{FLASHINFER_TRTLLM_MXFP4_MXFP8, kGeneric},
      ConverterRow{FLASHINFER_TRTLLM_MXFP4_BF16, kGeneric},
      ConverterRow{FLASHINFER_CUTLASS_MXFP4_MXFP8, kGeneric},
      ConverterRow{FLASHINFER_CUTLASS_MXFP4_BF16, kGeneric},
      ConverterRow{BATCHED_MARLIN, kGeneric},
      ConverterRow{MARLIN, kGeneric},
      ConverterRow{AITER_MXFP4_BF16, kGeneric},
      ConverterRow{AITER_MXFP4_FP8, kGeneric, true, false, true},
      ConverterRow{AITER_MXFP4_MXFP4, kGeneric},
      ConverterRow{TRITON, kGeneric},
      ConverterRow{TRITON_UNFUSED, kGeneric},
      ConverterRow{XPU, kGeneric},
      ConverterRow{CPU, kGeneric, false},
      ConverterRow{EMULATION, kGeneric},
      ConverterRow{HUMMING, kGeneric},
  };
  return kRows;
}

std::span<const LoadNoteRow> load_notes() {
  using Facts = LoadFacts;
  static constexpr std::array kRows = {
      LoadNoteRow{[](const Facts& f) {
                    const auto names = f.question.rules.option_names;
                    return std::ranges::find(names, f.question.deployment.moe_backend) ==
                               names.end() &&
                           f.decision.backend.has_value();
                  },
                  "moe_backend '{moe_backend}' is not accepted by the engine's own command line; "
                  "only code that builds the MoE configuration itself can ask for it",
                  ""},
      LoadNoteRow{[](const Facts& f) {
                    return f.caller != nullptr && f.question.capability &&
                           f.question.deployment.platform == Platform::kCuda &&
                           f.question.capability->major * 10 + f.question.capability->minor <
                               f.caller->minimum_capability;
                  },
                  "{method} needs capability {minimum_capability} or more: start-up stops before "
                  "the oracle is asked",
                  "", /*stops=*/true},
      LoadNoteRow{no_eplb,
                  "loading stops with NotImplementedError: EPLB is not supported {method}.", "",
                  /*stops=*/true},
      LoadNoteRow{[](const Facts& f) {
                    return f.caller != nullptr && f.caller->direct.empty() &&
                           f.converter != nullptr && !f.converter->supported;
                  },
                  "the {family} converter does not take {value}: loading stops with ValueError", "",
                  /*stops=*/true},
      LoadNoteRow{[](const Facts& f) {
                    return f.converter != nullptr && f.converter->needs_biases && f.biases == false;
                  },
                  "the {family} converter asserts that both biases exist for {value}, and the "
                  "checkpoint has none: loading stops with AssertionError",
                  "", /*stops=*/true},
      LoadNoteRow{[](const Facts& f) {
                    return f.converter != nullptr && f.converter->needs_input_scales &&
                           f.input_scales == false;
                  },
                  "loading stops with ValueError: W4A8 ({value}) requires static input scales, but "
                  "found w13_input_scale or w2_input_scale is None.",
                  "", /*stops=*/true},
      LoadNoteRow{[](const Facts& f) {
                    return f.caller != nullptr && !f.caller->gives_layer &&
                           chose(f, {FLASHINFER_TRTLLM_MXFP4_MXFP8, FLASHINFER_TRTLLM_MXFP4_BF16});
                  },
                  "{method} passes no permute cache, which the {value} converter asserts: loading "
                  "stops with AssertionError",
                  "", /*stops=*/true},
      LoadNoteRow{[](const Facts& f) {
                    return f.caller != nullptr && f.caller->first_class_only &&
                           f.caller->direct.empty() && f.decision.backend && !chose(f, {NONE}) &&
                           f.decision.experts_class != chosen_first_class(f);
                  },
                  "{method} replaces the chosen class by the backend's first one, {first_class}, "
                  "which does not support this deployment",
                  ""},
      LoadNoteRow{[](const Facts& f) {
                    return chose(f, {AITER_MXFP4_BF16}) &&
                           f.decision.experts_class == "AiterW4A16ExpertsMonolithic" &&
                           f.question.deployment.arch.find("gfx950") != std::string::npos;
                  },
                  "the converter looks at the architecture only and writes the layout of "
                  "AiterExperts, whatever class was chosen",
                  ""},
  };
  return kRows;
}

}  // namespace mxfp4::r2026_08_17
