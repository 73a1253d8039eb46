// The tables of vLLM 017e9f4448 (2026-08-17) that r2026_08_17.cpp gathers into one value. A table
// that is not here did not change since the revision before.
#pragma once

#include <span>
#include <vector>

#include "lib/oracle/rule_set.hpp"

namespace mxfp4::r2026_08_17 {

// r2026_08_17_names.cpp
[[nodiscard]] std::span<const ActivationKeyRow> keys();
[[nodiscard]] std::span<const std::string_view> activations();
[[nodiscard]] std::span<const NumberedName> routing_methods();
[[nodiscard]] std::span<const std::string_view> all2all_backends();
[[nodiscard]] std::span<const std::string_view> packages();
[[nodiscard]] std::span<const StockRow> stock_packages();
[[nodiscard]] std::span<const std::string_view> option_names();
[[nodiscard]] std::span<const OnlineShorthand> online_shorthands();
[[nodiscard]] std::span<const RoutingRow> routing();

// r2026_08_17_classes.cpp
[[nodiscard]] Condition uses_all2all();
[[nodiscard]] std::vector<ExpertClass> classes();
[[nodiscard]] std::span<const BackendRow> backends();

// r2026_08_17_selection.cpp
[[nodiscard]] std::span<const RequirementRow> requirements();
[[nodiscard]] std::span<const SelectorRow> selectors();

// r2026_08_17_checkpoint.cpp
[[nodiscard]] std::span<const CallerRow> callers();
[[nodiscard]] std::span<const ConverterRow> converters();
[[nodiscard]] std::span<const LoadNoteRow> load_notes();

// r2026_08_17_sizes.cpp
[[nodiscard]] std::span<const KernelSettingsRow> kernel_settings();
[[nodiscard]] std::span<const All2AllHiddenRow> all2all_hidden();
[[nodiscard]] std::span<const RoundingRow> rounding();

// r2026_08_17_layouts.cpp, r2026_08_17_defects.cpp
[[nodiscard]] std::span<const LayoutRow> layout_rows();
[[nodiscard]] std::span<const DefectRow> defect_rows();

}  // namespace mxfp4::r2026_08_17
