// The row types of a revision: vLLM's rules as data. One value of RuleSet a revision, in
// lib/revisions/; the evaluator (select.cpp) knows no backend and no revision by name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "lib/core/backend.hpp"
#include "lib/core/deployment.hpp"
#include "lib/core/layer.hpp"

namespace mxfp4 {

struct Layout;

// One condition on a target, with the words that say it.
struct TargetCondition {
  std::string_view text;  // "CUDA capability 9.0"; empty: always
  bool (*holds)(const Target&) = nullptr;  // null: always
};

// First match wins: this backend, for this family (or both), under this condition has that layout,
// or is refused with the reference's words.
struct LayoutRow {
  Backend backend;
  std::optional<Family> family;  // empty: both
  TargetCondition when;
  const Layout* layout = nullptr;
  std::string_view refusal;         // when there is no layout
  std::string_view refusal_type{};  // the reference's exception type
};

// What a known defect of the reference depends on.
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
  bool (*holds)(const Target&);
  int64_t hidden_multiple;
  int64_t intermediate_multiple;
};

// Everything that one engine revision decides.
struct RuleSet {
  std::string_view name;    // "vllm-YYYY-MM-DD"
  std::string_view commit;  // of vLLM
  std::string_view kernel_libraries;
  std::span<const RoundingRow> rounding;  // first match wins; oracle/mxfp4.py,
                                          // mxfp4_round_up_hidden_size_and_intermediate_size
  std::span<const LayoutRow> layouts;
  std::span<const DefectRow> defects;
};

// H and I (per rank) as the backend wants them: vLLM's rounding function on `dims`.
// Throws Error::input on overflow.
[[nodiscard]] LayerDims round_up_sizes(const RuleSet& rules, const Target& target, LayerDims dims);

// The row for a target; null when no row matches.
[[nodiscard]] const LayoutRow* find_layout_row(const RuleSet& rules, const Target& target);

}  // namespace mxfp4
