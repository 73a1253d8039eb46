// Which layout each backend has at vLLM a2c8fc6657 (fused_moe/oracle/mxfp4.py, the two
// convert_*_weight_to_mxfp4_moe_kernel_format functions), and where its bytes are known to be wrong.
#include "lib/revisions/r2026_05_18_layouts.hpp"

#include <array>

#include "lib/layouts/all.hpp"

namespace mxfp4::r2026_05_18 {
namespace {

const std::array kLayouts = {
    LayoutRow{Backend::XPU, Family::kGptOss, {}, &kIdentityLayout, {}},
    LayoutRow{Backend::EMULATION, Family::kGptOss, {}, &kIdentityLayout, {}},
};

}  // namespace

std::span<const LayoutRow> layout_rows() { return kLayouts; }
std::span<const DefectRow> defect_rows() { return {}; }

}  // namespace mxfp4::r2026_05_18
