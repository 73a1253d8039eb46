// The layout of each backend at vLLM 0.21.0 (fused_moe/oracle/mxfp4.py, the two
// convert_*_weight_to_mxfp4_moe_kernel_format functions).
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/triton_layouts.hpp"
#include "lib/revisions/base/tables.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/knob_conditions.hpp"

namespace mxfp4::base {
namespace {

using enum Backend;

constexpr TargetCondition kMarlinInt8{"marlin_input_dtype int8", [](const Target& t) {
                                        return knob_value(t, "marlin_input_dtype") == "int8";
                                      }};
constexpr TargetCondition kMarlinFp8{"marlin_input_dtype fp8", [](const Target& t) {
                                       return knob_value(t, "marlin_input_dtype") == "fp8";
                                     }};

// marlin_utils.py, get_marlin_input_dtype. False for an unknown arch: the bytes are the same
// on all.
bool marlin_fp8_on_other_arch(const Target& target) {
  if (!kMarlinFp8.holds(target) || target.arch.empty()) return false;
  const int capability = cuda_capability(target.arch).value_or(0);
  return capability != 89 && capability / 10 != 12;
}
constexpr TargetCondition kMarlinFp8OtherArch{"marlin_input_dtype fp8, arch neither sm89 nor sm12x",
                                              marlin_fp8_on_other_arch};

constexpr std::string_view kMarlinInt8Refusal = "MXFP4 weight + INT8 activation is not supported.";
constexpr std::string_view kMarlinFp8ArchRefusal =
    "Marlin with fp8 activations supports sm89 and sm12x only";
constexpr std::string_view kHummingRefusal =
    "this release pins no humming-kernels: the bytes of its layouts are not verified";

}  // namespace

std::vector<LayoutRow> layouts() {
  constexpr Family kGptOss = Family::kGptOss;
  constexpr Family kGeneric = Family::kGeneric;
  constexpr std::string_view kExpected = "TRTLLM, Triton, or AITER";
  return {
      {XPU, kGptOss, {}, &kIdentityLayout},
      edit::generic_refusal(XPU, kExpected),
      {EMULATION, kGptOss, {}, &kIdentityLayout},
      edit::generic_refusal(EMULATION, kExpected),
      {NONE, kGptOss, {}, nullptr, "Unsupported mxfp4_backend: Mxfp4MoeBackend.NONE", "ValueError"},
      edit::generic_refusal(NONE, kExpected),
      {DEEPGEMM_MXFP4, {}, {}, &kDeepgemmF32Layout},
      {FLASHINFER_TRTLLM_MXFP4_BF16, {}, {}, &kFlashinferTrtllmLayout},
      {FLASHINFER_TRTLLM_MXFP4_MXFP8, {}, {}, &kFlashinferTrtllmLayout},
      {FLASHINFER_CUTLASS_MXFP4_BF16, kGptOss, {}, &kFlashinferCutlassSm90ScalesLayout},
      edit::generic_refusal(FLASHINFER_CUTLASS_MXFP4_BF16, kExpected),
      {FLASHINFER_CUTLASS_MXFP4_MXFP8, kGptOss, {}, &kFlashinferCutlassMxfp8Layout},
      edit::generic_refusal(FLASHINFER_CUTLASS_MXFP4_MXFP8, kExpected),
      {MARLIN, {}, kMarlinInt8, nullptr, kMarlinInt8Refusal, "RuntimeError"},
      {MARLIN, {}, kMarlinFp8OtherArch, nullptr, kMarlinFp8ArchRefusal, "ValueError"},
      {MARLIN, {}, kMarlinFp8, &kMarlinW4A8Fp8Layout},
      {MARLIN, {}, {}, &kMarlinW4A16Layout},
      {BATCHED_MARLIN, {}, kMarlinInt8, nullptr, kMarlinInt8Refusal, "RuntimeError"},
      {BATCHED_MARLIN, {}, kMarlinFp8OtherArch, nullptr, kMarlinFp8ArchRefusal, "ValueError"},
      {BATCHED_MARLIN, {}, kMarlinFp8, &kMarlinW4A8Fp8Layout},
      {BATCHED_MARLIN, {}, {}, &kMarlinW4A16Layout},
      {HUMMING, {}, {}, nullptr, kHummingRefusal},
      // Not the oracle's yet, but compressed-tensors' own choice.
      {CUTLASS_MXFP4_MXFP4, kGeneric, {}, &kCutlassMxfp4Layout},

      {TRITON, kGptOss, kHopper, &kTritonHopper64Layout},
      {TRITON, kGptOss, kBlackwellUp, &kTritonBlackwellLayout},
      {TRITON, kGptOss, kGfx950, &kTritonCdna4Layout},
      {TRITON, kGptOss, kNoSwizzleInAnyWorld, &kTritonStridedLayout},
      {TRITON, kGeneric, kHopper, &kTritonHopper64KInterleavedLayout},
      {TRITON, kGeneric, kBlackwellUp, &kTritonBlackwellKInterleavedLayout},
      {TRITON, kGeneric, kGfx950, &kTritonCdna4KInterleavedLayout},
      {TRITON, kGeneric, kNoSwizzleInAnyWorld, &kTritonStridedKInterleavedLayout},
      {TRITON_UNFUSED, {}, kHopper, &kTritonHopper64Layout},
      {TRITON_UNFUSED, {}, kBlackwellUp, &kTritonBlackwellLayout},
      {TRITON_UNFUSED, {}, kGfx950, &kTritonCdna4Layout},
      {TRITON_UNFUSED, {}, kNoSwizzleInAnyWorld, &kTritonStridedLayout},

      {AITER_MXFP4_BF16, {}, {}, &kAiterW4a16Layout},
      {AITER_MXFP4_FP8, kGptOss, kGfx942OrGfx1250, &kAiterW4a8Fp8StridedLayout},
      {AITER_MXFP4_FP8, kGptOss, kGfx950, &kAiterW4a8Fp8Layout},
      {AITER_MXFP4_FP8, kGptOss, {}, nullptr, "AITER_MXFP4_FP8 runs on gfx950 only"},
      edit::generic_refusal(AITER_MXFP4_FP8, kExpected),
      {DEEP_GEMM_MEGA_MOE, kGeneric, {}, &kDeepgemmMegaMoeLayout},
  };
}

}  // namespace mxfp4::base
