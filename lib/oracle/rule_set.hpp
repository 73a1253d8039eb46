// The row types of a revision: vLLM's rules as data. One value of RuleSet a revision, in
// lib/revisions/; the evaluator (select.cpp) knows no backend, class or revision by name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/core/backend.hpp"
#include "lib/core/deployment.hpp"
#include "lib/core/layer.hpp"
#include "lib/oracle/condition.hpp"

namespace mxfp4 {

struct Layout;
struct ModelConfig;

// One condition on a target, with the words that say it.
struct TargetCondition {
  std::string_view text;                   // "CUDA capability 9.0"; empty: always
  bool (*holds)(const Target&) = nullptr;  // null: always
};

// First match wins: this backend, for this family (or both), under this condition has that layout,
// or is refused with the reference's words.
struct LayoutRow {
  Backend backend;
  std::optional<Family> family;  // empty: both
  TargetCondition when;
  const Layout* layout = nullptr;
  std::string_view refusal{};       // when there is no layout
  std::string_view refusal_type{};  // the reference's exception type
};

// The facts that a known defect of the reference depends on.
struct DefectFacts {
  const Target& target;
  const LayerDims& padded;
  W13Order order;  // how the source stores w13's rows
};

// Weights that the reference converts without an error and that are wrong for the model.
struct DefectRow {
  bool (*holds)(const DefectFacts&);
  std::string_view text;      // what is wrong, in words
  std::string_view fixed_in;  // vLLM revision or pull request; empty: not fixed
};

// A size rounded up to a multiple of these; 1 = unchanged.
struct RoundingRow {
  TargetCondition when;
  int64_t hidden_multiple;
  int64_t intermediate_multiple;
};

// The hidden size as an all-to-all backend wants it: a multiple, or the next of a list of sizes.
struct All2AllHiddenRow {
  std::string_view all2all_backend;
  int64_t multiple = 1;
  std::vector<int64_t> sizes{};  // ascending; a larger size is refused
};

// The reference's exception type and its words; the words are filled by fill_text.
struct Refusal {
  std::string_view type;
  std::string_view text;
};

// An activation quantization key, by its user-facing name. {fp8} in the text is the platform's.
struct ActivationKeyRow {
  std::string_view name;
  std::string_view text;
};

struct Fp8TextRow {  // first match wins
  Condition when;
  std::string_view text;   // in key texts
  std::string_view dtype;  // as torch writes it
};

// A backend: its own activation key, and the classes in the order they are tried.
struct BackendRow {
  Backend backend;
  std::string_view value;                 // in messages
  std::string_view key;                   // own activation key; empty: none
  std::vector<std::string_view> classes;  // names of RuleSet::classes
  bool survives_any_key = false;          // kept by the filter whatever key is asked for
  // Importing the classes fails when this package is absent; the refusal passes every selector.
  std::string_view required_package{};
  Refusal import_failure{};
  // For a backend that is asked for by name in a deployment with LoRA: classes that are tried first,
  // or the refusal, with which none is tried.
  std::vector<std::string_view> lora_classes{};
  Refusal lora_refusal{};
};

// A moe_backend string and its candidates in order.
struct AliasRow {
  std::string_view name;
  std::vector<Backend> candidates;
  bool keeps_order_without_key = false;  // no preference for backends without a key of their own
  Condition narrowed_when{};             // then only these are candidates, whatever key is asked
  std::vector<Backend> narrowed{};
};

// A candidate of an alias that gives way to another backend.
struct ReplacementRow {
  Condition when;
  Backend from;
  Backend to;
};

struct PriorityRow {  // first match wins
  Condition when;
  std::vector<Backend> backends;
};

// A backend that is asked alone, with this key; its answer is final.
struct ForcedTry {
  Condition when;
  Backend backend;
  std::string_view key;  // empty: none
};

// A variable that overrides the priority list when it is present: a number.
struct EnvOverrideRow {
  std::string_view variable;
  std::vector<Backend> dropped_when_zero{};
  std::vector<ForcedTry> tries;  // when not zero; first match wins
  Refusal otherwise{};           // no try matched
};

// The answer when no candidate of the priority list is supported; first match wins. Either a last
// try, or a refusal, or (both absent) the backend NONE without a class.
struct ExhaustedRow {
  Condition when;
  std::optional<ForcedTry> last_try{};
  std::optional<Refusal> refusal{};
};

// One of the reference's selection functions.
struct SelectorRow {
  Selector selector;
  bool uses_keys;                // checkpoint key, user override and filter take part
  bool drops_other_keys = true;  // the filter; false: all are asked, with the key or their own
  std::vector<PriorityRow> priorities;
  std::vector<EnvOverrideRow> env_overrides{};
  // Each backend is asked with its own key, not the requested one; backends that survive any key
  // are asked with the requested one all the same.
  bool own_key_when_named = false;
  bool own_key_in_list = false;
  bool filters_named = false;      // an alias is filtered although no key is used
  std::vector<ForcedTry> gates{};  // before the list, with the requested key; first match wins
  std::vector<ExhaustedRow> exhausted;
};

// A deployment that the reference refuses before it selects, when `must_hold` does not.
struct RequirementRow {
  Condition must_hold;
  Refusal refusal;
};

// The kind of grouped kernel that a package prefers: the variable names it, else the deployment
// decides.
struct GemmTypeRule {
  std::string_view variable;
  bool any_value = false;  // a value that is no known type is taken as it is, "auto" as unset
  bool grouped_with_expert_parallel = false;
};

struct Messages {
  Refusal unknown_backend;  // moe_backend is not in the alias table
  Refusal unsupported;      // {value}, {reason}: no class of one backend
  Refusal key_conflict;     // override against the checkpoint's key
  Refusal no_variant;       // {candidates}: the filter left nothing of an alias
  Refusal no_classes;       // {value}: a backend without classes
};

struct NumberedName {
  std::string_view name;
  int number;
};

struct NameAlias {
  std::string_view name;
  std::string_view means;
};

// The routing parameters of a model's config.
struct RoutingFacts {
  std::string_view scoring;  // "softmax", "sigmoid", "sqrtsoftplus", ...
  int64_t top_k = 1;
  bool renormalize = true;
  int64_t expert_groups = 0;
  bool score_bias = false;  // an e-score correction bias or a hash table
  std::optional<double> scaling_factor{};
};

struct RoutingRow {  // first match wins
  bool (*holds)(const RoutingFacts&);
  std::string_view text;
  std::string_view method;
};

// A string that stands for a whole quantization_config member: it sets weights only.
struct OnlineShorthand {
  std::string_view name;
  std::string_view linear_weight;  // empty: defines no linear spec
  std::string_view moe_weight;
};

// The quantization settings that the kernel is built with; first match wins.
struct KernelSettingsRow {
  Backend backend;
  std::string_view method{};  // only for this caller; empty: any
  std::string_view constructor;
  std::string_view activation_dtype{};  // {fp8}: the platform's; empty: none
  std::optional<std::array<int64_t, 2>> activation_shape{};
  std::optional<std::array<int64_t, 2>> block_shape{};
  bool scale_swizzled = true;
  int64_t mx_alignment = 0;
  bool passes_alpha_beta = true;
  bool takes_input_scales = false;
  bool needs_layer = false;  // built from the layer's own schemas
};

// A backend that a family's converter takes or, when not supported, refuses.
struct ConverterRow {
  Backend backend;
  Family family;
  bool supported = true;
  bool needs_biases = false;
  bool needs_input_scales = false;
};

struct CallerRow;
// The facts that a note about loading a checkpoint depends on.
struct LoadFacts {
  const Question& question;
  const Decision& decision;
  const CallerRow* caller;  // null: no checkpoint
  Family family;
  const ConverterRow* converter;  // null: none for that pair
  std::optional<bool> biases;     // empty: not known
  std::optional<bool> input_scales;
};

struct LoadNoteRow {
  bool (*holds)(const LoadFacts&);
  // Filled by fill_text and with {value}, {family}, {method}, {minimum_capability}, {first_class}.
  std::string_view text;
  std::string_view fixed_in;
  bool stops = false;  // the engine does not serve: it ends at its start or while it loads
};

// Selection by the method class itself: first match wins.
struct DirectRow {
  Condition when;
  std::optional<Backend> backend;  // empty: kernels that have no layout here
  std::string_view experts_class;
  std::string_view note;
};

// The engine's method class that serves a checkpoint, and its requests; first match wins.
struct CallerRow {
  std::string_view text;  // the condition in words
  bool (*holds)(const ModelConfig&);
  std::string_view method;  // "GptOssMxfp4MoEMethod"
  Selector selector = Selector::kGptOss;
  Family family = Family::kGptOss;
  std::string_view model_activation{};  // the checkpoint's own key; empty: none
  // The type of activations that the method passes to the converter for the checkpoint; empty: none.
  std::string_view input_dtype{};
  std::vector<DirectRow> direct{};        // not empty: the oracle is not asked
  std::vector<DirectRow> exceptions{};    // the oracle is asked where none of these holds
  bool rounds = true;                     // sizes are rounded
  Backend never_rounds = Backend::NONE;   // except for this backend; NONE: no exception
  std::optional<std::byte> scale_fill{};  // padding of scales; empty: the style's usual one
  bool first_class_only = false;          // the backend's first class replaces the chosen one
  Condition emulates_when{};              // EMULATION replaces what the oracle chose
  bool gives_layer = true;                // the converter gets permute cache and layer
  int minimum_capability = 0;             // on CUDA, major * 10 + minor
  std::optional<double> alpha{};
  std::optional<double> beta{};
  std::optional<double> clamp_limit{};
  bool model_clamp_limit = false;  // the limit is the model's own
  std::string_view note{};         // about any checkpoint of this kind
  std::string_view note_fixed_in{};
};

// What a knob calls the activations of a key.
struct KeyTypeRow {
  std::string_view key, type;
};

// What tells a converter the type of activations for which it packs; BF16 where nothing does.
struct InputDtypeRow {
  Backend backend;
  Family family;
  std::string_view knob;      // this program's, for the same type
  std::string_view variable;  // of the serving process; where it is set, nothing else counts
  bool checkpoint = false;    // CallerRow::input_dtype counts
  bool override = false;      // quantization_config.moe.activation counts
  std::span<const KeyTypeRow> types{};  // the knob's value for the override; others by their keys
};

// A kernel library whose version a revision asks for.
struct LibraryPin {
  std::string_view library;  // the distribution's name: "flashinfer", "humming-kernels"
  std::string_view version;
  std::optional<Platform> platform{};  // empty: on every platform
};

// The packages that a platform has installed by default.
struct StockRow {
  Platform platform;
  std::vector<std::string_view> packages;
};

// How the engine's generic loader treats experts. The gpt-oss loaders are the same in every
// revision.
struct LoaderRules {
  bool strides_by_checkpoint =
      false;                  // ranks begin at multiples of I / tp, not of their padded size
  bool loads_biases = false;  // where a checkpoint has them; false: they stay unread
  // The gpt-oss method gives other models biases of zeros. Releases ask the model for has_bias
  // first (quantization/mxfp4.py, create_weights), which gpt-oss alone has.
  bool creates_biases = true;
};

// Everything that one engine revision decides. A value: a newer revision is a copy with changes
// (lib/revisions).
struct RuleSet {
  std::string_view name{};    // "vllm-0.33.0", "vllm-YYYY-MM-DD"
  std::string_view commit{};  // of vLLM
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
  Messages messages;

  // From a checkpoint.
  std::vector<CallerRow> callers;
  std::vector<RoutingRow> routing;  // from model parameters
  std::vector<OnlineShorthand> online_shorthands;
  // The engine takes a quantization_config beside any value of --quantization, and its member
  // "targets".
  bool quantization_config_anywhere = false;
  // The engine has quantization_config.moe.activation: the user's key beside the checkpoint's.
  bool takes_override = true;
  std::vector<ConverterRow> converters;
  std::vector<KernelSettingsRow> kernel_settings;
  std::vector<InputDtypeRow> input_dtypes{};  // of releases that ask more than the variable
  std::vector<LoadNoteRow> load_notes;

  // Sizes and bytes.
  LoaderRules loader{};
  std::vector<All2AllHiddenRow> all2all_hidden;
  Refusal all2all_hidden_refusal;     // {hidden}, {largest}
  std::vector<RoundingRow> rounding;  // first match wins; oracle/mxfp4.py,
                                      // mxfp4_round_up_hidden_size_and_intermediate_size
  std::vector<LayoutRow> layouts;
  std::vector<DefectRow> defects;
};

// H and I (per rank) as the backend wants them: vLLM's rounding function on `dims`.
// Throws Error::input on overflow.
[[nodiscard]] LayerDims round_up_sizes(const RuleSet& rules, const Target& target, LayerDims dims);

// H as the all-to-all kernel wants it, for bf16 activations; applied before round_up_sizes and only
// when an all-to-all kernel is in use. Throws Error::unsupported above the largest size,
// Error::input on overflow.
[[nodiscard]] int64_t round_up_all2all_hidden(const RuleSet& rules,
                                              std::string_view all2all_backend, int64_t hidden);

// The row for a target; null when no row matches.
[[nodiscard]] const LayoutRow* find_layout_row(const RuleSet& rules, const Target& target);

// Null when the rule set has no such row.
[[nodiscard]] const BackendRow* find_backend_row(const RuleSet& rules, Backend backend);
[[nodiscard]] const ExpertClass* find_class(const RuleSet& rules, std::string_view name);
[[nodiscard]] const ActivationKeyRow* find_key_row(const RuleSet& rules, std::string_view name);
[[nodiscard]] bool is_package(const RuleSet& rules, std::string_view name);
[[nodiscard]] const ConverterRow* find_converter_row(const RuleSet& rules, Backend backend,
                                                     Family family);

}  // namespace mxfp4
