// The layout and defect tables of vLLM a2c8fc6657 (2026-05-18), used by r2026_05_18.cpp.
#pragma once

#include <span>

#include "lib/oracle/rule_set.hpp"

namespace mxfp4::r2026_05_18 {

[[nodiscard]] std::span<const LayoutRow> layout_rows();
[[nodiscard]] std::span<const DefectRow> defect_rows();

}  // namespace mxfp4::r2026_05_18
