// A revision: an engine's rules as data. One value of RuleSet a revision, in lib/revisions/; the
// evaluator (select.cpp) knows no backend, class or revision by name.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/oracle/selection_rows.hpp"
#include "lib/oracle/serving_rows.hpp"

namespace mxfp4 {

// Everything that one engine revision decides. A value: a newer revision is a copy with changes
// (lib/revisions).
struct RuleSet {
  Engine engine = Engine::kVllm;
  std::string_view name{};    // "vllm-0.33.0", "vllm-YYYY-MM-DD", "sglang-0.5.23"
  std::string_view commit{};  // of the engine; empty: its wheel does not say
  std::vector<LibraryPin> pins{};

  // Names and their texts.
  std::vector<ActivationKeyRow> keys;
  std::string_view weight_key_text;
  std::vector<Fp8TextRow> fp8_texts;
  std::vector<std::string_view> activations;
  std::vector<NameAlias> activation_aliases;
  std::vector<NumberedName> routing_methods;
  std::vector<std::string_view> all2all_backends;
  std::vector<NameAlias> all2all_aliases;
  std::vector<std::string_view> packages;
  std::vector<StockRow> stock_packages;

  // The deployment's own facts.
  Condition gated;
  Condition uses_all2all;
  Condition batched;
  std::vector<RequirementRow> requirements;
  GemmTypeRule gemm_type{};

  // Selection.
  std::vector<ExpertClass> classes;
  std::vector<BackendRow> backends;
  std::vector<AliasRow> aliases;
  std::vector<ReplacementRow> replacements;
  bool falls_back_without_key = false;         // the filter keeps backends without a key, last
  std::vector<std::string_view> option_names;  // moe_backend strings that the engine's own
                                               // command line accepts
  std::vector<SelectorRow> selectors;
  std::vector<ModelBackendRow> model_backends{};
  Messages messages;

  // From a checkpoint.
  std::vector<CallerRow> callers;
  std::vector<RoutingRow> routing;  // from model parameters
  // Classes are asked with the model's own routing where the process simulates another one.
  bool simulates_beside_routing = false;
  // The engine has quantization_config.moe.activation: the user's key beside the checkpoint's.
  bool takes_override = true;
  std::vector<ConverterRow> converters;
  std::vector<MethodKnobRow> method_knobs{};
  std::vector<InputDtypeRow> input_dtypes{};  // of releases that ask more than the variable
  std::vector<LoadNoteRow> load_notes;
  std::vector<FusedSharedRow> fused_shared{};
  std::vector<ParameterNameRow> parameter_names{};  // empty: as in a blob

  // Sizes and bytes.
  LoaderRules loader{};
  std::vector<All2AllHiddenRow> all2all_hidden;
  Refusal all2all_hidden_refusal;     // {hidden}, {largest}
  std::vector<RoundingRow> rounding;  // first match wins; oracle/mxfp4.py,
                                      // mxfp4_round_up_hidden_size_and_intermediate_size
  std::vector<LeastSliceRow> least_slices{};
  std::vector<LayoutRow> layouts;
  std::vector<DefectRow> defects;
};

// H and I (per rank) as the backend wants them: the engine's rounding of `dims` for the method
// class of this name; "": none. Throws Error::input on overflow.
[[nodiscard]] LayerDims round_up_sizes(const RuleSet& rules, const Target& target, LayerDims dims,
                                       std::string_view method = "");

// The row that round_up_sizes follows; null: none, sizes stay.
[[nodiscard]] const RoundingRow* find_rounding_row(const RuleSet& rules, const Target& target,
                                                   std::string_view method);

// H as the all-to-all kernel wants it, for bf16 activations; applied before round_up_sizes and only
// when an all-to-all kernel is in use. Throws Error::unsupported above the largest size,
// Error::input on overflow.
[[nodiscard]] int64_t round_up_all2all_hidden(const RuleSet& rules,
                                              std::string_view all2all_backend, int64_t hidden);

// The row for a model on a platform; null when its class has no such rule.
[[nodiscard]] const LeastSliceRow* find_least_slice(const RuleSet& rules, Platform platform,
                                                    const ModelConfig& config);

// The row for a target; null when no row matches.
[[nodiscard]] const LayoutRow* find_layout_row(const RuleSet& rules, const Target& target);

// Null when the rule set has no such row.
[[nodiscard]] const BackendRow* find_backend_row(const RuleSet& rules, Backend backend);
// Any row of a backend that models ask for by themselves; null for the oracle's backends.
[[nodiscard]] const ModelBackendRow* find_model_backend(const RuleSet& rules, Backend backend);
[[nodiscard]] const ExpertClass* find_class(const RuleSet& rules, std::string_view name);
[[nodiscard]] const ActivationKeyRow* find_key_row(const RuleSet& rules, std::string_view name);
[[nodiscard]] bool is_package(const RuleSet& rules, std::string_view name);
[[nodiscard]] const ConverterRow* find_converter_row(const RuleSet& rules, Backend backend,
                                                     Family family);

}  // namespace mxfp4
