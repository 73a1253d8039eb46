// Sizes and layouts of SGLang 0.5.16: create_weights and process_weights_after_loading of
// srt/layers/quantization/mxfp4.py, mxfp4_flashinfer_trtllm_moe.py,
// mxfp4_flashinfer_cutlass_moe.py, mxfp4_marlin_moe.py, fp8.py, and
// srt/layers/moe/fused_moe_triton/layer.py, which rounds H first.
#include <string>
#include <vector>

#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/triton_layouts.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/sglang/tables.hpp"

namespace mxfp4::sglang {
namespace {

using enum Backend;

template <Backend... kBackends>
bool takes(const Target& target) {
  return ((target.backend == kBackends) || ...);
}

bool trtllm_of_gpt_oss(const Target& t) {
  return takes<FLASHINFER_TRTLLM_MXFP4_MXFP8>(t) && t.family == Family::kGptOss;
}
bool cutlass_of_gpt_oss(const Target& t) {
  return takes<FLASHINFER_CUTLASS_MXFP4_BF16, FLASHINFER_CUTLASS_MXFP4_MXFP8>(t) &&
         t.family == Family::kGptOss;
}
bool aiter_of_gpt_oss(const Target& t) {
  return takes<AITER_MXFP4_BF16>(t) && t.family == Family::kGptOss;
}

bool reads_as_false(std::string_view value) { return !reads_as_true(value, true); }

bool on_gfx1250(const Target& t) { return t.arch.find("gfx1250") != std::string::npos; }

bool not_gfx95(const Target& t) {
  return !t.arch.empty() && t.arch.find("gfx95") == std::string::npos;
}

constexpr TargetCondition kSeparated{"SGLANG_USE_AITER_MOE_GU_ITLV off",
                                     nullptr,
                                     {{{"SGLANG_USE_AITER_MOE_GU_ITLV", reads_as_false}}}};
constexpr TargetCondition kUnofficialShuffle{
    "SGLANG_MXFP4_USE_OFFICIAL_SHUFFLE off",
    nullptr,
    {{{"SGLANG_MXFP4_USE_OFFICIAL_SHUFFLE", reads_as_off}}}};
constexpr TargetCondition kForcedA8W4{
    "AITER_FORCE_A8W4", nullptr, {{{"AITER_FORCE_A8W4", reads_as_on}}}};
constexpr TargetCondition kGfx1250{"gfx1250", on_gfx1250};
constexpr TargetCondition kNotGfx95{"other ROCm than gfx95x", not_gfx95};

}  // namespace

std::vector<RoundingRow> rounding() {
  return {
      {{"TRT-LLM of gpt-oss", trtllm_of_gpt_oss}, 256, 256},
      {{"CUTLASS of gpt-oss", cutlass_of_gpt_oss}, 256, 128},
      {{"AITER of gpt-oss", aiter_of_gpt_oss}, 256, 256},
      {{"AITER", takes<AITER_MXFP4_BF16>}, 1, 256},
      {{"MARLIN of FP4 experts", takes<MARLIN>},
       256,
       128,
       "Fp8MoEMethod",
       kScaleOfOne,
       kScaleOfOne},
      {{"MARLIN", takes<MARLIN>}, 256, 128},
      {{"TRITON", takes<TRITON>}, 1, 64},
      {{}, 1, 1},
  };
}

std::vector<LayoutRow> layouts() {
  constexpr Family kGptOss = Family::kGptOss;
  constexpr Family kGeneric = Family::kGeneric;
  return {
      {FLASHINFER_TRTLLM_MXFP4_MXFP8, kGeneric, kUnofficialShuffle, nullptr, kNotExecuted},
      {FLASHINFER_TRTLLM_MXFP4_MXFP8, {}, {}, &kFlashinferTrtllmLayout},
      {FLASHINFER_CUTLASS_MXFP4_BF16, kGptOss, {}, &kFlashinferCutlassSm90Layout},
      {FLASHINFER_CUTLASS_MXFP4_BF16, kGeneric, {}, &kFlashinferCutlassSm90HalvesLayout},
      {FLASHINFER_CUTLASS_MXFP4_MXFP8, kGptOss, {}, &kFlashinferCutlassMxfp8Layout},
      {FLASHINFER_CUTLASS_MXFP4_MXFP8, kGeneric, {}, &kFlashinferCutlassMxfp8HalvesLayout},
      {MARLIN, kGptOss, {}, nullptr, kNotExecuted},
      {MARLIN, kGeneric, {}, &kMarlinW4A16Layout},
      {HUMMING, {}, {}, nullptr, kNotExecuted},
      {CPU, {}, {}, nullptr, kNotExecuted},
      {TRITON, kGptOss, kHopper, &kTritonHopper64Layout},
      {TRITON, kGptOss, kBlackwellUp, &kTritonBlackwellLayout},
      {TRITON, kGptOss, kNoSwizzleInAnyWorld, &kTritonStridedLayout},
      {TRITON, kGeneric, {}, nullptr, kNotExecuted},
      {AITER_MXFP4_BF16, kGptOss, kSeparated, nullptr, kNotExecuted},
      {AITER_MXFP4_BF16, kGptOss, {}, &kAiterW4a16Layout},
      {AITER_MXFP4_BF16, kGeneric, kForcedA8W4, nullptr, kNotExecuted},
      {AITER_MXFP4_BF16, kGeneric, kGfx1250, nullptr, kNotExecuted},
      {AITER_MXFP4_BF16, kGeneric, kNotGfx95, nullptr,
       "SGLang shuffles the scales and leaves the weights here: no layout is known"},
      {AITER_MXFP4_BF16, kGeneric, kSeparated, &kAiterBf16SeparatedLayout},
      {AITER_MXFP4_BF16, kGeneric, {}, &kAiterBf16HalvesLayout},
  };
}

}  // namespace mxfp4::sglang
