// vLLM a2c8fc6657 (2026-05-18, fused_moe/oracle/mxfp4.py), main three days after 0.21.0: users give
// an activation key, by which backends are left out; AITER's MXFP4 activations and CPU
// are backends.
#include <fmt/format.h>

#include "lib/core/error.hpp"
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/humming_layouts.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/triton_layouts.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/releases.hpp"
#include "lib/revisions/shared_conditions.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

void take_keys(RuleSet& rules) {
  rules.takes_override = true;
  edit::add(rules.keys,
            {"int8_per_channel_static", "QuantKey(i8,scale(f32,static,per_channel),symmetric)"});
  SelectorRow& by_key = edit::row(rules.selectors, Selector::kGptOss);
  by_key.drops_other_keys = true;
  edit::row(by_key.priorities, always().text).backends = {FLASHINFER_TRTLLM_MXFP4_BF16,
                                                          FLASHINFER_TRTLLM_MXFP4_MXFP8,
                                                          AITER_MXFP4_BF16,
                                                          AITER_MXFP4_FP8,
                                                          AITER_MXFP4_MXFP4,
                                                          TRITON,
                                                          FLASHINFER_CUTLASS_MXFP4_BF16,
                                                          FLASHINFER_CUTLASS_MXFP4_MXFP8,
                                                          MARLIN,
                                                          BATCHED_MARLIN,
                                                          XPU};
  edit::add(edit::row(rules.aliases, "flashinfer_trtllm").candidates,
            FLASHINFER_TRTLLM_MXFP4_MXFP8);
  edit::add(edit::row(rules.aliases, "flashinfer_cutlass").candidates,
            FLASHINFER_CUTLASS_MXFP4_MXFP8);
  const Condition cuda_or_rocm =
      any_of({platform_is(Platform::kCuda), platform_is(Platform::kRocm)});
  edit::row(by_key.exhausted, cuda_or_rocm.text).refusal->text =
      "No MXFP4 MoE backend supports the deployment configuration. "
      "weight_key=kMxfp4Static, activation_key={model_key}. Native backends require specific "
      "hardware. Set `VLLM_LOGGING_LEVEL=DEBUG` to see detailed unsupported reasons. To use the "
      "emulation backend for research/debugging, pass --moe-backend emulation.";
}

void add_aiter_mxfp4(RuleSet& rules) {
  edit::add_backend_after(rules, AITER_MXFP4_FP8,
                          {AITER_MXFP4_MXFP4, "AITER_MXFP4_MXFP4", "mxfp4", {"AiterExperts"}});
  edit::converter(rules, Family::kGeneric, AITER_MXFP4_MXFP4).supported = false;
  edit::row(rules.aliases, "aiter").candidates = {AITER_MXFP4_BF16, AITER_MXFP4_FP8,
                                                  AITER_MXFP4_MXFP4};
  edit::add_after(rules.aliases, "aiter_mxfp4_fp8", {"aiter_mxfp4_mxfp4", {AITER_MXFP4_MXFP4}});
  ExpertClass& aiter = edit::row(rules.classes, "AiterExperts");
  edit::row(aiter.checks, "scheme").passes = all_of({none_or({"mxfp4"}), arch_contains("gfx950")});
  aiter.suffix = ReasonSuffix{none_of({aiter_moe_enabled(kAiterDevices)}),
                              ". AITER MoE is not enabled \xE2\x80\x94 set VLLM_ROCM_USE_AITER=1 "
                              "and VLLM_ROCM_USE_AITER_MOE=1 to enable it"};
}

void add_cpu(RuleSet& rules) {
  edit::add_after(
      rules.classes, "XPUExpertsMXFp4",
      generic_class({.name = "CPUExpertsMxfp4",
                     .monolithic = true,
                     .device = platform_is(Platform::kCpu),
                     .activation = activation_in({"silu", "swigluoai"}),
                     .scheme = no_key(),
                     .parallel = always(),
                     .routing = routing_in({"Default", "Renormalize", "RenormalizeNaive"})}));
  edit::add_backend_after(rules, XPU, {CPU, "CPU", "", {"CPUExpertsMxfp4"}});
  edit::converter(rules, Family::kGeneric, CPU).supported = false;
  edit::add_after(rules.aliases, "xpu", {"cpu", {CPU}});
  SelectorRow& by_key = edit::row(rules.selectors, Selector::kGptOss);
  edit::add_after(by_key.exhausted, platform_is(Platform::kXpu).text,
                  {.when = platform_is(Platform::kCpu), .last_try = ForcedTry{always(), CPU, ""}});
}

// QuarkOCP_MX_MoEMethod asks the oracle for quantized activations, too, and takes its answer.
void ask_for_quark(RuleSet& rules) {
  for (const std::string_view text :
       {"Quark fp4 weights, bf16 activations", "Quark fp4 weights, static fp8 activations"}) {
    edit::row(rules.callers, text).replaced_when = {};
  }
  CallerRow& quantized = edit::row(rules.callers, "Quark fp4 weights, dynamic fp4 activations");
  quantized.model_activation = "mxfp4";
  quantized.direct.clear();
}

// Throws Error::usage for types that younger releases know.
bool humming_8bit(const Target& target) {
  const std::string type = knob_value(target, "humming_input_dtype");
  if (type == "none" || type == "float8e4m3" || type == "int8") return type != "none";
  throw Error::usage(
      fmt::format("knob humming_input_dtype: expected none, float8e4m3 or int8, found '{}'", type));
}
constexpr TargetCondition kHumming8Bit{"humming_input_dtype float8e4m3 or int8", humming_8bit};

// Throws Error::usage when the arch is not a CUDA device's: the layout depends on it.
bool humming_wgmma(const Target& target) {
  const std::optional<int> capability = cuda_capability(target.arch);
  if (!capability) {
    throw Error::usage(
        fmt::format("HUMMING's layout depends on the CUDA architecture: expected "
                    "an arch such as sm90, found '{}'",
                    target.arch));
  }
  return *capability / 10 == 9;
}
constexpr TargetCondition kHummingWgmma{"CUDA capability 9.x", humming_wgmma};

void change_layouts_05_18(RuleSet& rules) {
  constexpr Family kGptOss = Family::kGptOss;
  constexpr std::string_view kExpected = "TRTLLM, Triton, or AITER";
  // On other CPUs the reference selects CPU, too, and then misses the packing operators.
  constexpr std::string_view kNoOperators =
      "the CPU backend's packing operators exist only in x86_64 builds with AVX-512 BF16";
  edit::replace_layout(rules, kTritonHopper64Layout, kTritonHopperLayout);
  edit::replace_layout(rules, kTritonHopper64KInterleavedLayout, kTritonHopperKInterleavedLayout);
  edit::replace_layout(rules, kFlashinferCutlassSm90ScalesLayout, kFlashinferCutlassSm90Layout);
  edit::drop_layouts(rules, AITER_MXFP4_FP8, kGfx942OrGfx1250);
  edit::drop_layouts(rules, HUMMING);
  edit::add_layouts(rules, {{AITER_MXFP4_MXFP4, kGptOss, {}, &kAiterW4a4Layout},
                            edit::generic_refusal(AITER_MXFP4_MXFP4, kExpected),
                            {CPU, kGptOss, kNoCpuKernels, nullptr, kNoOperators},
                            {CPU, kGptOss, {}, &kCpuVnni32Layout},
                            edit::generic_refusal(CPU, kExpected),
                            {HUMMING, {}, kHumming8Bit, &kHummingW4A8Layout},
                            {HUMMING, {}, kHummingWgmma, &kHummingWgmmaLayout},
                            {HUMMING, {}, {}, &kHummingMmaLayout}});
  edit::add_before(
      rules.load_notes, "first class",
      {"humming helper", [](const LoadFacts& f) { return f.decision.backend == HUMMING; },
       "the engine's humming helper imports a module that does not exist at this "
       "revision: loading stops with ModuleNotFoundError; the bytes written here are "
       "what its code intends",
       "vLLM 206b72c982 (2026-05-27)", /*stops=*/true});
}

}  // namespace

const Release kCommit20260518 = {
    .name = "vllm-2026-05-18",
    .date = "2026-05-18",
    .commit = "a2c8fc6657",
    .pins = {{"flashinfer", "0.6.11.post2"},
             {"triton_kernels", "3.6.0"},
             {"AITER", "0.1.13"},
             {"humming-kernels", "0.1.0a1"}},
    .changes =
        "a commit of main: the user's activation key; CPU and AITER_MXFP4_MXFP4; no "
        "emulation in the list; other bytes on sm90",
    .apply =
        [](RuleSet& rules) {
          take_keys(rules);
          add_aiter_mxfp4(rules);
          add_cpu(rules);
          ask_for_quark(rules);
          change_layouts_05_18(rules);
          for (const std::string_view name : kTritonClasses) {
            edit::condition(rules, name, "device") = triton_device(11, arch_contains("gfx12"));
          }
          rules.loader.creates_biases = true;
        },
};

}  // namespace mxfp4
