// The tables of vLLM a2c8fc6657 (2026-05-18) that r2026_05_18.cpp gathers into one value. Functions
// rather than objects, so that a later revision may use an unchanged table whatever the order of
// initialisation.
#pragma once

#include <span>
#include <vector>

#include "lib/oracle/rule_set.hpp"

namespace mxfp4::r2026_05_18 {

// r2026_05_18_names.cpp
[[nodiscard]] std::span<const ActivationKeyRow> keys();
[[nodiscard]] std::span<const Fp8TextRow> fp8_texts();
[[nodiscard]] std::span<const std::string_view> activations();
[[nodiscard]] std::span<const NameAlias> activation_aliases();
[[nodiscard]] std::span<const NumberedName> routing_methods();
[[nodiscard]] std::span<const std::string_view> all2all_backends();
[[nodiscard]] std::span<const NameAlias> all2all_aliases();
[[nodiscard]] std::span<const std::string_view> packages();
[[nodiscard]] std::span<const StockRow> stock_packages();
[[nodiscard]] std::span<const std::string_view> option_names();
[[nodiscard]] std::span<const OnlineShorthand> online_shorthands();
[[nodiscard]] std::span<const RoutingRow> routing();

// r2026_05_18_classes.cpp
[[nodiscard]] Condition uses_all2all();
[[nodiscard]] Condition batched();
[[nodiscard]] Condition aiter_moe_enabled();
[[nodiscard]] std::vector<ExpertClass> classes();
[[nodiscard]] std::span<const BackendRow> backends();

// r2026_05_18_selection.cpp
[[nodiscard]] std::span<const AliasRow> aliases();
[[nodiscard]] std::span<const ReplacementRow> replacements();
[[nodiscard]] std::span<const SelectorRow> selectors();
[[nodiscard]] Messages messages();

// r2026_05_18_checkpoint.cpp
[[nodiscard]] std::span<const CallerRow> callers();
[[nodiscard]] std::span<const ConverterRow> converters();
[[nodiscard]] std::span<const LoadNoteRow> load_notes();

// r2026_05_18_sizes.cpp
[[nodiscard]] std::span<const KernelSettingsRow> kernel_settings();
[[nodiscard]] std::span<const All2AllHiddenRow> all2all_hidden();
[[nodiscard]] std::span<const RoundingRow> rounding();

}  // namespace mxfp4::r2026_05_18
