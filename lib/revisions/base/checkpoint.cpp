// The method classes of vLLM 0.21.0 by checkpoint, the backends that their converters take, and
// the faults after a successful selection: quantization/{mxfp4,quark/quark_moe}.py,
// quantization/compressed_tensors/, oracle/mxfp4.py (convert_*_weight_to_mxfp4_moe_kernel_format),
// config/model.py (verify_with_parallel_config).
#include <algorithm>
#include <vector>

#include "lib/core/model_config.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/base/tables.hpp"
#include "lib/revisions/direct_rows.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4::base {
namespace {

using enum Backend;

// The commit that mended it.
constexpr std::string_view kAugust = "vLLM 017e9f4448 (2026-08-17)";

bool is_mxfp4(const ModelConfig& config) {
  return config.quantization &&
         (config.quantization->name == "mxfp4" || config.quantization->name == "gpt_oss_mxfp4");
}

bool is_gpt_oss(const ModelConfig& config) {
  return config.model_type == "gpt_oss" || config.original_gpt_oss;
}

bool is_quark(const ModelConfig& config, std::string_view activation) {
  return config.quantization && config.quantization->name == "quark" &&
         config.quantization->activation == activation;
}

CallerRow gpt_oss_caller() {
  return {.text = "quant_method mxfp4, model_type gpt_oss",
          .holds = [](const ModelConfig& c) { return is_mxfp4(c) && is_gpt_oss(c); },
          .method = "GptOssMxfp4MoEMethod",
          .minimum_capability = 80};
}

CallerRow other_mxfp4_caller() {
  CallerRow row = gpt_oss_caller();
  row.text = "quant_method mxfp4, any other model_type";
  row.holds = is_mxfp4;
  row.note =
      "experts are loaded as gate and up halves, but handed to the gpt-oss converter, which takes "
      "w13 rows as interleaved: converters that reorder rows give wrong weights";
  row.note_fixed_in = kAugust;
  return row;
}

CallerRow deepseek_v4_caller() {
  return {
      .text = "quant_method fp8 or deepseek_v4_fp8, model_type deepseek_v4, expert_dtype fp4",
      .holds =
          [](const ModelConfig& c) {
            return c.quantization &&
                   (c.quantization->name == "fp8" || c.quantization->name == "deepseek_v4_fp8") &&
                   c.model_type == "deepseek_v4" &&
                   (c.quantization->expert_dtype.empty() || c.quantization->expert_dtype == "fp4");
          },
      .method = "Mxfp4MoEMethod",
      .selector = Selector::kDeepseekV4,
      .family = Family::kGeneric,
      .minimum_capability = 75};
}

Condition mx_device() { return all_of({platform_is(Platform::kRocm), arch_contains("gfx95")}); }

// This method emulates where neither gfx95x nor AITER's fused MoE is there, whatever the
// oracle chose.
CallerRow quark_caller() {
  return {.text = "Quark fp4 weights, bf16 activations",
          .holds = [](const ModelConfig& c) { return is_quark(c, ""); },
          .method = "QuarkOCP_MX_MoEMethod",
          .never_rounds = EMULATION,
          .first_class_only = true,
          .replaced_when = none_of({any_of({mx_device(), aiter_moe_enabled(kAiterDevices)})}),
          .replacement = EMULATION,
          .gives_layer = false};
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
  row.replaced_when = {};
  row.direct = {
      {mx_device(),
       {},
       "AITER MXFP4xMXFP4",
       "fp4 activations: the engine prepares the weights for AITER itself, without asking "
       "the oracle"},
      {always(), EMULATION, "OCP_MXQuantizationEmulationTritonExperts",
       "fp4 activations: the engine emulates without asking the oracle"}};
  return row;
}

CallerRow quark_fp6_caller() {
  CallerRow row = quark_caller();
  row.text = "Quark fp4 weights, fp6 activations";
  row.holds = [](const ModelConfig& c) { return is_quark(c, "fp6"); };
  row.replaced_when = {};
  row.direct = {{always(), EMULATION, "OCP_MXQuantizationEmulationTritonExperts",
                 "fp6 activations: the engine emulates without asking the oracle"}};
  return row;
}

CallerRow compressed_tensors_caller() {
  return {.text = "compressed-tensors, 4-bit float, group 32, symmetric",
          .holds =
              [](const ModelConfig& c) {
                return c.quantization && c.quantization->name == "compressed-tensors";
              },
          .method = "CompressedTensorsW4A4Mxfp4MoEMethod",
          .family = Family::kGeneric,
          .direct = {{all_of({platform_is(Platform::kCuda), capability_family(10)}),
                      CUTLASS_MXFP4_MXFP4, "CutlassExpertsMxfp4",
                      "compressed-tensors bypasses the oracle: on capability 10.x it runs CUTLASS "
                      "MXFP4xMXFP4 experts with their own preparation"},
                     no_marlin_repack(),
                     {always(), MARLIN, "MarlinExperts",
                      "compressed-tensors bypasses the oracle: Marlin's own preparation, no "
                      "rounding; moe_backend, override and environment are ignored"}},
          .rounds = false};
}

std::string_view chosen_first_class(const LoadFacts& f) {
  const BackendRow* row = find_backend_row(f.question.rules, *f.decision.backend);
  return row == nullptr || row->classes.empty() ? "" : row->classes.front();
}

bool chose(const LoadFacts& f, std::initializer_list<Backend> backends) {
  return f.decision.backend && std::ranges::find(backends, *f.decision.backend) != backends.end();
}

bool refused_by_converter(const LoadFacts& f) {
  return f.caller != nullptr && f.caller->direct.empty() && f.converter != nullptr &&
         !f.converter->supported;
}

// model_executor/layers/linear.py, QKVParallelLinear.
bool kv_heads_fit(const std::optional<int64_t>& heads, int64_t ranks) {
  if (heads.value_or(0) == 0) return true;
  return ranks >= *heads ? ranks % *heads == 0 : *heads % ranks == 0;
}

bool of_mxfp4_config(const LoadFacts& f) {
  return f.question.deployment.quantization == "mxfp4" ||
         f.question.deployment.quantization == "gpt_oss_mxfp4";
}

// lora/layers/fused_moe.py, _ep_check; config/parallel.py, use_sequence_parallel_moe.
bool lora_over_ranks(const LoadFacts& f) {
  const Deployment& d = f.question.deployment;
  const MoeParallel& p = f.question.parallel;
  if (!d.lora || !p.use_ep) return false;
  const bool split = d.parallel.tp_size > 1 && p.dp_size > 1 && d.limits.splits_inputs;
  return p.all2all_backend != "allgather_reducescatter" || p.sp_size > 1 || split;
}

// What the model's class cannot do (lib/revisions/class_limits.hpp).
std::vector<LoadNoteRow> class_notes() {
  using Facts = LoadFacts;
  return {
      {"class on the platform", [](const Facts& f) { return !f.question.deployment.limits.starts; },
       "the engine's {class} raises NotImplementedError on this platform: start-up stops", "",
       /*stops=*/true},
      {"quantization of the platform",
       [](const Facts& f) { return !f.question.deployment.limits.quantization; },
       "the engine does not take {quantization} on this platform: start-up stops with ValueError",
       "", /*stops=*/true},
      {"LoRA of the class",
       [](const Facts& f) {
         return f.question.deployment.lora && !f.question.deployment.limits.lora;
       },
       "the engine's {class} does not take adapters (LoRA): start-up stops with ValueError", "",
       /*stops=*/true},
      {"LoRA over ranks", lora_over_ranks,
       "LoRA on experts that are spread over ranks asserts the all-to-all "
       "allgather_reducescatter, and no inputs split by tensor parallelism: loading stops with "
       "AssertionError",
       "", /*stops=*/true},
      {"experts for the ranks",
       [](const Facts& f) {
         const Deployment& d = f.question.deployment;
         return !d.limits.few_experts && d.num_experts && d.parallel.tp_size > *d.num_experts;
       },
       "the engine's {class} asks for at least as many experts as tensor parallel ranks, and "
       "{tp_size} are more than {num_experts}: loading stops with ValueError",
       "", /*stops=*/true},
      {"redundant experts of the class",
       [](const Facts& f) {
         const Deployment& d = f.question.deployment;
         return !d.limits.redundant_experts && d.parallel.num_redundant_experts > 0;
       },
       "the engine's {class} hands no redundant experts on: the ranks hold the model's own, each "
       "once",
       ""},
      {"float16",
       [](const Facts& f) { return f.question.deployment.half_precision && of_mxfp4_config(f); },
       "the model's type is float16, and the engine takes {quantization} in bfloat16 only: "
       "start-up stops with ValueError (--dtype bfloat16 there, --knob params_dtype=bfloat16 here)",
       "", /*stops=*/true},
  };
}

bool from_quark(const LoadFacts& f) { return f.caller != nullptr && !f.caller->gives_layer; }

}  // namespace

std::vector<CallerRow> callers() {
  return {
      gpt_oss_caller(),   other_mxfp4_caller(), deepseek_v4_caller(), quark_caller(),
      quark_fp8_caller(), quark_mxfp4_caller(), quark_fp6_caller(),   compressed_tensors_caller(),
  };
}

std::vector<ConverterRow> converters() {
  constexpr Family kGptOss = Family::kGptOss;
  constexpr Family kGeneric = Family::kGeneric;
  return {
      {NONE, kGptOss, false},
      {DEEPGEMM_MXFP4, kGptOss},
      {FLASHINFER_TRTLLM_MXFP4_MXFP8, kGptOss, true, true},
      {FLASHINFER_TRTLLM_MXFP4_BF16, kGptOss, true, true},
      {FLASHINFER_CUTLASS_MXFP4_MXFP8, kGptOss, true, true},
      {FLASHINFER_CUTLASS_MXFP4_BF16, kGptOss, true, true},
      {BATCHED_MARLIN, kGptOss},
      {MARLIN, kGptOss},
      {AITER_MXFP4_BF16, kGptOss},
      {AITER_MXFP4_FP8, kGptOss, true, false, true},
      {TRITON, kGptOss},
      {TRITON_UNFUSED, kGptOss},
      {XPU, kGptOss},
      {EMULATION, kGptOss},
      {HUMMING, kGptOss},
      {NONE, kGeneric, false},
      {DEEPGEMM_MXFP4, kGeneric},
      {FLASHINFER_TRTLLM_MXFP4_MXFP8, kGeneric},
      {FLASHINFER_TRTLLM_MXFP4_BF16, kGeneric},
      {FLASHINFER_CUTLASS_MXFP4_MXFP8, kGeneric, false},
      {FLASHINFER_CUTLASS_MXFP4_BF16, kGeneric, false},
      {BATCHED_MARLIN, kGeneric},
      {MARLIN, kGeneric},
      {AITER_MXFP4_BF16, kGeneric},
      {AITER_MXFP4_FP8, kGeneric, false},
      {TRITON, kGeneric},
      {TRITON_UNFUSED, kGeneric},
      {XPU, kGeneric, false},
      {EMULATION, kGeneric, false},
      {HUMMING, kGeneric},
  };
}

std::vector<LoadNoteRow> load_notes() {
  using Facts = LoadFacts;
  std::vector<LoadNoteRow> rows = {
      {"moe_backend",
       [](const Facts& f) {
         const auto names = f.question.rules.option_names;
         return std::ranges::find(names, f.question.deployment.moe_backend) == names.end() &&
                f.decision.backend.has_value();
       },
       "moe_backend '{moe_backend}' is not accepted by the engine's own command line; "
       "only code that builds the MoE configuration itself can ask for it",
       ""},
      {"mori",
       [](const Facts& f) {
         return f.question.parallel.all2all_backend == "mori" && f.question.uses_all2all &&
                !aiter_moe_enabled(kAiterDevices).holds(f.question);
       },
       "the mori all-to-all asserts that AITER's fused MoE is enabled: start-up stops "
       "with AssertionError",
       "", /*stops=*/true},
      {"no backend", [](const Facts& f) { return chose(f, {NONE}); },
       "no backend on this platform: the engine stops before it converts weights", "",
       /*stops=*/true},
      {"capability", below_minimum_capability,
       "{method} needs capability {minimum_capability} or more: start-up stops before "
       "the oracle is asked",
       "", /*stops=*/true},
      {"attention heads",
       [](const Facts& f) {
         const Deployment& d = f.question.deployment;
         return d.attention_heads.value_or(0) % d.parallel.tp_size != 0;
       },
       "{attention_heads} attention heads are not divisible by {tp_size} tensor parallel ranks: "
       "start-up stops with ValueError",
       "", /*stops=*/true},
      {"KV heads",
       [](const Facts& f) {
         return !kv_heads_fit(f.question.deployment.kv_heads,
                              f.question.deployment.parallel.tp_size);
       },
       "{kv_heads} KV heads and {tp_size} tensor parallel ranks: neither divides the other, and "
       "loading stops with AssertionError",
       "", /*stops=*/true},
      {"EPLB",
       [](const Facts& f) { return f.caller != nullptr && f.question.parallel.enable_eplb; },
       "loading stops with NotImplementedError: EPLB is not supported {method}.", "",
       /*stops=*/true},
      {"converter",
       [](const Facts& f) {
         return refused_by_converter(f) && !chose(f, {NONE, CPU});
       },
       "the {family} converter does not take {value}: loading stops with ValueError", kAugust,
       /*stops=*/true},
      {"converter of CPU",
       [](const Facts& f) { return refused_by_converter(f) && chose(f, {CPU}); },
       "the {family} converter does not take {value}: loading stops with ValueError", "",
       /*stops=*/true},
      {"biases",
       [](const Facts& f) {
         return f.converter != nullptr && f.converter->needs_biases && f.biases == false;
       },
       "the {family} converter asserts that both biases exist for {value}, and the "
       "checkpoint has none: loading stops with AssertionError",
       "", /*stops=*/true},
      {"input scales",
       [](const Facts& f) {
         return f.converter != nullptr && f.converter->needs_input_scales &&
                f.input_scales == false;
       },
       "loading stops with ValueError: W4A8 ({value}) requires static input scales, but "
       "found w13_input_scale or w2_input_scale is None.",
       "", /*stops=*/true},
      {"permute cache",
       [](const Facts& f) {
         return from_quark(f) &&
                chose(f, {FLASHINFER_TRTLLM_MXFP4_MXFP8, FLASHINFER_TRTLLM_MXFP4_BF16});
       },
       "{method} passes no permute cache, which the {value} converter asserts: loading "
       "stops with AssertionError",
       "", /*stops=*/true},
      {"layer", [](const Facts& f) { return from_quark(f) && chose(f, {HUMMING}); },
       "{method} does not pass the layer, which the {value} kernel builder asserts: "
       "loading stops with AssertionError",
       "", /*stops=*/true},
      {"first class",
       [](const Facts& f) {
         return f.caller != nullptr && f.caller->first_class_only && f.caller->direct.empty() &&
                f.decision.backend && !chose(f, {NONE}) &&
                f.decision.experts_class != chosen_first_class(f);
       },
       "{method} replaces the chosen class by the backend's first one, {first_class}, "
       "which does not support this deployment",
       ""},
      {"CPU operators", [](const Facts& f) { return chose(f, {CPU}); },
       "the CPU operators exist only on x86 with AVX512F, AVX512_BF16 and AVX512_VNNI; "
       "elsewhere loading stops",
       ""},
  };
  for (const LoadNoteRow& row : class_notes()) rows.push_back(row);
  return rows;
}

}  // namespace mxfp4::base
