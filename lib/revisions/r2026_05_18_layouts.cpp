// The layout of each backend at vLLM a2c8fc6657 (fused_moe/oracle/mxfp4.py, the two
// convert_*_weight_to_mxfp4_moe_kernel_format functions).
#include "lib/revisions/r2026_05_18_layouts.hpp"

#include <array>

#include "lib/layouts/all.hpp"
#include "lib/revisions/knob_conditions.hpp"

namespace mxfp4::r2026_05_18 {
namespace {

// A backend that the generic converter has no branch for, with the words it raises.
constexpr LayoutRow generic_refusal(Backend backend, std::string_view words) {
  return {backend, Family::kGeneric, {}, nullptr, words, "ValueError"};
}
constexpr std::string_view kMarlinInt8Refusal = "MXFP4 weight + INT8 activation is not supported.";
constexpr std::string_view kMarlinFp8ArchRefusal =
    "Marlin with fp8 activations supports sm89 and sm12x only";
constexpr std::string_view kGenericCpuRefusal =
    "Unsupported mxfp4_backend for Mxfp4MoEMethod: Mxfp4MoeBackend.CPU. Expected TRTLLM, Triton, "
    "or "
    "AITER backend.";
// On other CPUs the reference selects CPU too, and then misses the packing operators when it loads.
constexpr std::string_view kCpuArchRefusal =
    "the CPU backend's packing operators exist only in x86_64 builds with AVX-512 BF16";
// The arch predicates of quantization/utils/mxfp4_utils.py, _swizzle_mxfp4.
constexpr TargetCondition kHopper = {
    "CUDA capability 9.0", [](const Target& target) { return cuda_capability(target.arch) == 90; }};
constexpr TargetCondition kBlackwellUp = {
    "CUDA capability 10.0 and above",
    [](const Target& target) { return cuda_capability(target.arch).value_or(0) >= 100; }};
constexpr TargetCondition kGfx950 = {
    "gfx950", [](const Target& target) { return target.arch.starts_with("gfx950"); }};
// CUDA and ROCm without an arch match no row: the layout depends on it.
constexpr TargetCondition kNoSwizzle = {
    "CUDA capability below 9.0, other ROCm, other platforms", [](const Target& target) {
      if (target.platform == Platform::kCuda) return cuda_capability(target.arch).has_value();
      return target.platform != Platform::kRocm || !target.arch.empty();
    }};

const std::array kLayouts = {
    LayoutRow{Backend::XPU, Family::kGptOss, {}, &kIdentityLayout, {}},
    LayoutRow{Backend::EMULATION, Family::kGptOss, {}, &kIdentityLayout, {}},
    generic_refusal(Backend::XPU,
                    "Unsupported mxfp4_backend for Mxfp4MoEMethod: "
                    "Mxfp4MoeBackend.XPU. Expected TRTLLM, Triton, or AITER backend."),
    generic_refusal(Backend::EMULATION,
                    "Unsupported mxfp4_backend for Mxfp4MoEMethod: "
                    "Mxfp4MoeBackend.EMULATION. Expected TRTLLM, Triton, or AITER backend."),
    generic_refusal(Backend::NONE,
                    "Unsupported mxfp4_backend for Mxfp4MoEMethod: "
                    "Mxfp4MoeBackend.NONE. Expected TRTLLM, Triton, or AITER backend."),
    LayoutRow{Backend::NONE,
              Family::kGptOss,
              {},
              nullptr,
              "Unsupported mxfp4_backend: Mxfp4MoeBackend.NONE",
              "ValueError"},
    LayoutRow{Backend::DEEPGEMM_MXFP4, {}, {}, &kDeepgemmF32Layout, {}},
    LayoutRow{Backend::FLASHINFER_TRTLLM_MXFP4_BF16, {}, {}, &kFlashinferTrtllmLayout, {}},
    LayoutRow{Backend::FLASHINFER_TRTLLM_MXFP4_MXFP8, {}, {}, &kFlashinferTrtllmLayout, {}},
    LayoutRow{Backend::FLASHINFER_CUTLASS_MXFP4_BF16,
              Family::kGptOss,
              {},
              &kFlashinferCutlassSm90Layout,
              {}},
    LayoutRow{Backend::FLASHINFER_CUTLASS_MXFP4_MXFP8,
              Family::kGptOss,
              {},
              &kFlashinferCutlassMxfp8Layout,
              {}},
    generic_refusal(Backend::FLASHINFER_CUTLASS_MXFP4_BF16,
                    "Unsupported mxfp4_backend for Mxfp4MoEMethod: "
                    "Mxfp4MoeBackend.FLASHINFER_CUTLASS_MXFP4_BF16. "
                    "Expected TRTLLM, Triton, or AITER backend."),
    generic_refusal(Backend::FLASHINFER_CUTLASS_MXFP4_MXFP8,
                    "Unsupported mxfp4_backend for Mxfp4MoEMethod: "
                    "Mxfp4MoeBackend.FLASHINFER_CUTLASS_MXFP4_MXFP8. "
                    "Expected TRTLLM, Triton, or AITER backend."),
    LayoutRow{Backend::MARLIN, {}, kMarlinInt8, nullptr, kMarlinInt8Refusal, "RuntimeError"},
    LayoutRow{
        Backend::MARLIN, {}, kMarlinFp8OtherArch, nullptr, kMarlinFp8ArchRefusal, "ValueError"},
    LayoutRow{Backend::MARLIN, {}, kMarlinFp8, &kMarlinW4A8Fp8Layout, {}},
    LayoutRow{Backend::MARLIN, {}, {}, &kMarlinW4A16Layout, {}},
    LayoutRow{
        Backend::BATCHED_MARLIN, {}, kMarlinInt8, nullptr, kMarlinInt8Refusal, "RuntimeError"},
    LayoutRow{Backend::BATCHED_MARLIN,
              {},
              kMarlinFp8OtherArch,
              nullptr,
              kMarlinFp8ArchRefusal,
              "ValueError"},
    LayoutRow{Backend::BATCHED_MARLIN, {}, kMarlinFp8, &kMarlinW4A8Fp8Layout, {}},
    LayoutRow{Backend::BATCHED_MARLIN, {}, {}, &kMarlinW4A16Layout, {}},
    LayoutRow{Backend::HUMMING, {}, kHumming8Bit, &kHummingW4A8Layout, {}},
    LayoutRow{Backend::HUMMING, {}, kHummingWgmma, &kHummingWgmmaLayout, {}},
    LayoutRow{Backend::HUMMING, {}, {}, &kHummingMmaLayout, {}},
    LayoutRow{Backend::CPU, Family::kGeneric, {}, nullptr, kGenericCpuRefusal, "ValueError"},
    LayoutRow{Backend::CPU, Family::kGptOss, kNoCpuKernels, nullptr, kCpuArchRefusal, {}},
    LayoutRow{Backend::CPU, Family::kGptOss, {}, &kCpuVnni32Layout, {}},

    LayoutRow{Backend::TRITON, Family::kGptOss, kHopper, &kTritonHopperLayout, {}},
    LayoutRow{Backend::TRITON, Family::kGptOss, kBlackwellUp, &kTritonBlackwellLayout, {}},
    LayoutRow{Backend::TRITON, Family::kGptOss, kGfx950, &kTritonCdna4Layout, {}},
    LayoutRow{Backend::TRITON, Family::kGptOss, kNoSwizzle, &kTritonStridedLayout, {}},
    LayoutRow{Backend::TRITON, Family::kGeneric, kHopper, &kTritonHopperKInterleavedLayout, {}},
    LayoutRow{
        Backend::TRITON, Family::kGeneric, kBlackwellUp, &kTritonBlackwellKInterleavedLayout, {}},
    LayoutRow{Backend::TRITON, Family::kGeneric, kGfx950, &kTritonCdna4KInterleavedLayout, {}},
    LayoutRow{Backend::TRITON, Family::kGeneric, kNoSwizzle, &kTritonStridedKInterleavedLayout, {}},
    LayoutRow{Backend::TRITON_UNFUSED, {}, kHopper, &kTritonHopperLayout, {}},
    LayoutRow{Backend::TRITON_UNFUSED, {}, kBlackwellUp, &kTritonBlackwellLayout, {}},
    LayoutRow{Backend::TRITON_UNFUSED, {}, kGfx950, &kTritonCdna4Layout, {}},
    LayoutRow{Backend::TRITON_UNFUSED, {}, kNoSwizzle, &kTritonStridedLayout, {}},

    LayoutRow{Backend::AITER_MXFP4_BF16, {}, {}, &kAiterW4a16Layout, {}},
    LayoutRow{Backend::AITER_MXFP4_FP8, Family::kGptOss, kGfx950, &kAiterW4a8Fp8Layout, {}},
    LayoutRow{Backend::AITER_MXFP4_FP8,
              Family::kGptOss,
              {},
              nullptr,
              "AITER_MXFP4_FP8 runs on gfx950 only"},
    LayoutRow{Backend::AITER_MXFP4_FP8,
              Family::kGeneric,
              {},
              nullptr,
              "Unsupported mxfp4_backend for Mxfp4MoEMethod: Mxfp4MoeBackend.AITER_MXFP4_FP8. "
              "Expected TRTLLM, Triton, or AITER backend.",
              "ValueError"},
    LayoutRow{Backend::AITER_MXFP4_MXFP4, Family::kGptOss, {}, &kAiterW4a4Layout, {}},
    LayoutRow{Backend::AITER_MXFP4_MXFP4,
              Family::kGeneric,
              {},
              nullptr,
              "Unsupported mxfp4_backend for Mxfp4MoEMethod: Mxfp4MoeBackend.AITER_MXFP4_MXFP4. "
              "Expected TRTLLM, Triton, or AITER backend.",
              "ValueError"},
};

}  // namespace

std::span<const LayoutRow> layout_rows() { return kLayouts; }

}  // namespace mxfp4::r2026_05_18
