// Which layout each backend has at vLLM a2c8fc6657 (fused_moe/oracle/mxfp4.py, the two
// convert_*_weight_to_mxfp4_moe_kernel_format functions), and where its bytes are known to be
// wrong.
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
// The reference selects CPU there too, and then misses the packing operators when it loads.
constexpr std::string_view kCpuArchRefusal =
    "the CPU backend's packing operators exist only in x86_64 builds with AVX-512 BF16";

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
    LayoutRow{Backend::CPU, Family::kGptOss, kArchNotX86, nullptr, kCpuArchRefusal, {}},
    LayoutRow{Backend::CPU, Family::kGptOss, {}, &kCpuVnni32Layout, {}},
};

}  // namespace

std::span<const LayoutRow> layout_rows() { return kLayouts; }
std::span<const DefectRow> defect_rows() { return {}; }

}  // namespace mxfp4::r2026_05_18
