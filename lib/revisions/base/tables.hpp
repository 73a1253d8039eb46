// The tables of vLLM 0.21.0, which v0_21_0.cpp gathers into one value. Functions, so that the order
// in which files are initialised does not matter.
#pragma once

#include <vector>

#include "lib/oracle/rule_set.hpp"

namespace mxfp4::base {

// names.cpp
[[nodiscard]] std::vector<ActivationKeyRow> keys();
[[nodiscard]] std::vector<Fp8TextRow> fp8_texts();
[[nodiscard]] std::vector<std::string_view> activations();
[[nodiscard]] std::vector<NameAlias> activation_aliases();
[[nodiscard]] std::vector<NumberedName> routing_methods();
[[nodiscard]] std::vector<std::string_view> all2all_backends();
[[nodiscard]] std::vector<NameAlias> all2all_aliases();
[[nodiscard]] std::vector<std::string_view> packages();
[[nodiscard]] std::vector<StockRow> stock_packages();
[[nodiscard]] std::vector<std::string_view> option_names();
[[nodiscard]] std::vector<RoutingRow> routing();

// classes.cpp
[[nodiscard]] Condition uses_all2all();
[[nodiscard]] Condition batched();
[[nodiscard]] std::vector<ExpertClass> classes();
[[nodiscard]] std::vector<BackendRow> backends();

// selection.cpp
[[nodiscard]] std::vector<AliasRow> aliases();
[[nodiscard]] std::vector<ReplacementRow> replacements();
[[nodiscard]] std::vector<SelectorRow> selectors();
[[nodiscard]] Messages messages();

// checkpoint.cpp
[[nodiscard]] std::vector<CallerRow> callers();
[[nodiscard]] std::vector<ConverterRow> converters();
[[nodiscard]] std::vector<LoadNoteRow> load_notes();

// model_backends.cpp
[[nodiscard]] std::vector<ModelBackendRow> model_backends();
[[nodiscard]] std::vector<FusedSharedRow> fused_shared();

// sizes.cpp
[[nodiscard]] std::vector<All2AllHiddenRow> all2all_hidden();
[[nodiscard]] std::vector<RoundingRow> rounding();

// layouts.cpp, defects.cpp
[[nodiscard]] std::vector<LayoutRow> layouts();
[[nodiscard]] std::vector<DefectRow> defects();

}  // namespace mxfp4::base
