// Which layout each backend has at vLLM a2c8fc6657 (fused_moe/oracle/mxfp4.py, the two
// convert_*_weight_to_mxfp4_moe_kernel_format functions), and where its bytes are known to be
// wrong.
#include "lib/revisions/r2026_05_18_layouts.hpp"

#include <array>

#include "lib/layouts/all.hpp"

namespace mxfp4::r2026_05_18 {
namespace {

// A backend that the generic converter has no branch for, with the words it raises.
constexpr LayoutRow generic_refusal(Backend backend, std::string_view words) {
  return {backend, Family::kGeneric, {}, nullptr, words, "ValueError"};
}

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
};

}  // namespace

std::span<const LayoutRow> layout_rows() { return kLayouts; }
std::span<const DefectRow> defect_rows() { return {}; }

}  // namespace mxfp4::r2026_05_18
