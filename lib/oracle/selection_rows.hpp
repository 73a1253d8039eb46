// Rows of a revision that decide which backend a deployment gets, and its layout and sizes: vLLM's
// rules as data. The rows that decide how it is served are in serving_rows.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/core/backend.hpp"
#include "lib/core/deployment.hpp"
#include "lib/core/layer.hpp"
#include "lib/oracle/condition.hpp"

namespace mxfp4 {

struct Layout;

// A variable of the serving process that a condition asks.
struct AskedVariable {
  std::string_view name;
  bool (*holds)(std::string_view value) = nullptr;
  bool holds_if_unset = false;
};

// One condition on a target, with the words that say it.
struct TargetCondition {
  std::string_view text;                     // "CUDA capability 9.0"; empty: always
  bool (*holds)(const Target&) = nullptr;    // of the target without its variables; null: always
  std::array<AskedVariable, 3> variables{};  // each must hold, too; without a name: none
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
  std::string_view name;  // for releases that change the row
  bool (*holds)(const DefectFacts&);
  std::string_view text;      // what is wrong, in words
  std::string_view fixed_in;  // vLLM revision or pull request; empty: not fixed
};

// H and I are rounded up to these multiples; 1: left as it is.
struct RoundingRow {
  TargetCondition when;
  int64_t hidden_multiple;
  int64_t intermediate_multiple;
  std::string_view method{};  // only for this caller; empty: any
  // Padding of scales: of the tail of H, and of the tail of I, where both meet too. Empty:
  // the caller's.
  std::optional<std::byte> hidden_fill{}, intermediate_fill{};
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
  std::string_view text;
};

// A backend: its own activation key, and the classes in the order they are tried.
struct BackendRow {
  Backend backend;
  std::string_view value;                 // in messages
  std::string_view key;                   // own activation key; empty: none
  std::vector<std::string_view> classes;  // names of RuleSet::classes
  bool survives_any_key = false;          // kept by the filter whatever key is asked for
  bool emulates = false;                  // computes without MXFP4 kernels, many times slower
  // Its layout depends on the CUDA compiler that its package finds on the serving machine.
  bool asks_compiler = false;
  // Importing the classes fails when this package is absent; the refusal passes every selector.
  std::string_view required_package{};
  Refusal import_failure{};
  // For a backend that is asked for by name in a deployment with LoRA: classes that are tried
  // first, or the refusal, with which none is tried.
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

// The only backend that is asked, with this key; its answer is final.
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
  std::string_view name;  // for releases that change the row
  Condition must_hold;
  Refusal refusal;
};

// A kernel that a model's own file takes for a value of moe_backend, before the quantization method
// is made: the oracle is not asked. First match wins; where none matches, the oracle gets the name.
struct ModelBackendRow {
  std::string_view moe_backend;
  std::vector<std::string_view> model_types;
  Condition when;  // where the engine has such a file for the model
  Backend backend;
  std::string_view experts_class;
  // What file and kernel ask for, in their order.
  std::vector<RequirementRow> requirements;
  // EPLB's redundant experts repeat the first ones; false: the model's class holds none.
  bool redundant_experts = false;
};

// The kind of grouped kernel that a package prefers: the variable names it, else the deployment
// decides.
struct GemmTypeRule {
  std::string_view variable;
  bool any_value = false;  // a value that is not a known type is taken as it is, "auto" as unset
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

}  // namespace mxfp4
