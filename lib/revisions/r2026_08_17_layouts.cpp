// The layout of each backend at vLLM 017e9f4448 (fused_moe/oracle/mxfp4.py, the two
// convert_*_weight_to_mxfp4_moe_kernel_format functions).
#include <array>

#include "lib/layouts/all.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/r2026_08_17_tables.hpp"

namespace mxfp4::r2026_08_17 {
namespace {

using enum Backend;

constexpr Family kGptOss = Family::kGptOss;
constexpr Family kGeneric = Family::kGeneric;

constexpr std::string_view kMarlinInt8Refusal = "MXFP4 weight + INT8 activation is not supported.";
constexpr std::string_view kMarlinFp8ArchRefusal =
    "Marlin with fp8 activations supports sm89 and sm12x only";
constexpr std::string_view kGenericCpuRefusal =
    "Unsupported mxfp4_backend for Mxfp4MoEMethod: Mxfp4MoeBackend.CPU. Expected TRTLLM, "
    "FlashInfer CUTLASS, Triton, AITER, XPU, or emulation backend.";
constexpr std::string_view kGenericNoneRefusal =
    "Unsupported mxfp4_backend for Mxfp4MoEMethod: Mxfp4MoeBackend.NONE. Expected TRTLLM, "
    "FlashInfer CUTLASS, Triton, AITER, XPU, or emulation backend.";
constexpr std::string_view kHummingRefusal =
    "no wheel has the converter of this commit: the bytes of its layouts are not verified; those "
    "of "
    "0.28.0 are";
constexpr std::string_view kDeepgemmRefusal =
    "no wheel has the DeepGEMM of this commit: its order of scales on capability 12.x is not "
    "verified";

constexpr TargetCondition kHopper = {
    "CUDA capability 9.0", [](const Target& target) { return cuda_capability(target.arch) == 90; }};
constexpr TargetCondition kBlackwellUp = {
    "CUDA capability 10.0 and above",
    [](const Target& target) { return cuda_capability(target.arch).value_or(0) >= 100; }};

constexpr TargetCondition kSituA8w4 = {
    "activation situ, VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4 and AITER MoE on",
    [](const Target& target) {
      return situ(target) && env_is_on(target, "VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4", false) &&
             env_is_on(target, "VLLM_ROCM_USE_AITER", false) &&
             env_is_on(target, "VLLM_ROCM_USE_AITER_MOE", true);
    }};

const std::array kLayouts = {
    LayoutRow{XPU, {}, {}, &kIdentityLayout, {}},
    LayoutRow{EMULATION, kGptOss, {}, &kIdentityInputMaximumLayout, {}},
    LayoutRow{EMULATION, kGeneric, {}, &kIdentityLayout, {}},
    LayoutRow{NONE,
              kGptOss,
              {},
              nullptr,
              "Unsupported mxfp4_backend: Mxfp4MoeBackend.NONE",
              "ValueError"},
    LayoutRow{NONE, kGeneric, {}, nullptr, kGenericNoneRefusal, "ValueError"},
    LayoutRow{DEEPGEMM_MXFP4, {}, kCapability12, nullptr, kDeepgemmRefusal},
    LayoutRow{DEEPGEMM_MXFP4, {}, {}, &kDeepgemmPackedLayout, {}},
    LayoutRow{FLASHINFER_TRTLLM_MXFP4_BF16, {}, {}, &kFlashinferTrtllmLayout, {}},
    LayoutRow{FLASHINFER_TRTLLM_MXFP4_MXFP8, {}, {}, &kFlashinferTrtllmLayout, {}},
    LayoutRow{FLASHINFER_CUTLASS_MXFP4_BF16, kGptOss, {}, &kFlashinferCutlassSm90Layout, {}},
    LayoutRow{FLASHINFER_CUTLASS_MXFP4_BF16, kGeneric, {}, &kFlashinferCutlassSm90HalvesLayout, {}},
    LayoutRow{FLASHINFER_CUTLASS_MXFP4_MXFP8, kGptOss, {}, &kFlashinferCutlassMxfp8Layout, {}},
    LayoutRow{
        FLASHINFER_CUTLASS_MXFP4_MXFP8, kGeneric, {}, &kFlashinferCutlassMxfp8HalvesLayout, {}},
    LayoutRow{MARLIN, {}, kMarlinInt8, nullptr, kMarlinInt8Refusal, "RuntimeError"},
    LayoutRow{MARLIN, {}, kMarlinFp8OtherArch, nullptr, kMarlinFp8ArchRefusal, "ValueError"},
    LayoutRow{MARLIN, {}, kMarlinFp8, &kMarlinW4A8Fp8Layout, {}},
    LayoutRow{MARLIN, {}, {}, &kMarlinW4A16Layout, {}},
    LayoutRow{BATCHED_MARLIN, {}, kMarlinInt8, nullptr, kMarlinInt8Refusal, "RuntimeError"},
    LayoutRow{
        BATCHED_MARLIN, {}, kMarlinFp8OtherArch, nullptr, kMarlinFp8ArchRefusal, "ValueError"},
    LayoutRow{BATCHED_MARLIN, {}, kMarlinFp8, &kMarlinW4A8Fp8Layout, {}},
    LayoutRow{BATCHED_MARLIN, {}, {}, &kMarlinW4A16Layout, {}},
    LayoutRow{HUMMING, {}, {}, nullptr, kHummingRefusal},
    LayoutRow{CPU, kGeneric, {}, nullptr, kGenericCpuRefusal, "ValueError"},
    LayoutRow{CPU, kGptOss, kNoCpuKernels, nullptr, kNoCpuKernelsRefusal},
    LayoutRow{CPU, kGptOss, {}, &kCpuVnni32Layout, {}},

    LayoutRow{TRITON, kGptOss, kHopper, &kTritonHopperS4Layout, {}},
    LayoutRow{TRITON, kGptOss, kBlackwellUp, &kTritonBlackwellLayout, {}},
    LayoutRow{TRITON, kGptOss, kCdna4, &kTritonCdna4Layout, {}},
    LayoutRow{TRITON, kGptOss, kNoSwizzle, &kTritonStridedLayout, {}},
    LayoutRow{TRITON, kGeneric, kHopper, &kTritonHopperS4KInterleavedLayout, {}},
    LayoutRow{TRITON, kGeneric, kBlackwellUp, &kTritonBlackwellKInterleavedLayout, {}},
    LayoutRow{TRITON, kGeneric, kCdna4, &kTritonCdna4KInterleavedLayout, {}},
    LayoutRow{TRITON, kGeneric, kNoSwizzle, &kTritonStridedKInterleavedLayout, {}},
    LayoutRow{TRITON_UNFUSED, {}, kHopper, &kTritonHopperS4Layout, {}},
    LayoutRow{TRITON_UNFUSED, {}, kBlackwellUp, &kTritonBlackwellLayout, {}},
    LayoutRow{TRITON_UNFUSED, {}, kCdna4, &kTritonCdna4Layout, {}},
    LayoutRow{TRITON_UNFUSED, {}, kNoSwizzle, &kTritonStridedLayout, {}},

    LayoutRow{AITER_MXFP4_BF16, kGptOss, {}, &kAiterW4a16Layout, {}},
    LayoutRow{AITER_MXFP4_BF16, kGeneric, kGfx1250, &kTritonStridedLayout, {}},
    LayoutRow{AITER_MXFP4_BF16, kGeneric, kSituA8w4, &kAiterBf16SituA8w4Layout, {}},
    LayoutRow{AITER_MXFP4_BF16, kGeneric, kSitu, &kAiterBf16SituLayout, {}},
    LayoutRow{AITER_MXFP4_BF16, kGeneric, kArchTold, &kAiterBf16HalvesLayout, {}},
    // The generic converter hands AITER_MXFP4_FP8 and AITER_MXFP4_MXFP4 to the gpt-oss one.
    LayoutRow{AITER_MXFP4_FP8, {}, kCdna4, &kAiterW4a8Fp8Layout, {}},
    LayoutRow{AITER_MXFP4_FP8, {}, kArchTold, &kAiterW4a8Fp8StridedLayout, {}},
    LayoutRow{AITER_MXFP4_MXFP4, {}, {}, &kAiterW4a4Layout, {}},
};

}  // namespace

std::span<const LayoutRow> layout_rows() { return kLayouts; }

}  // namespace mxfp4::r2026_08_17
