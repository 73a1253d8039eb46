// The engine's side of a checkpoint: the method class that serves it, and the decision for it with the
// faults that are known to follow.
//
// Usage:
//   const CallerRow* caller = find_caller(rules, config);
//   Decision decision = decide(rules, deployment, {.caller = caller});
//   Family family = family_of(caller, {}, deployment.selector);
//   Target target = make_target(deployment, decision, family);
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/model_config.hpp"
#include "lib/oracle/select.hpp"

namespace mxfp4 {

// The caller that serves the config's model; null when the config names no quantization. Throws
// Error::unsupported for a quantization that has no MXFP4 experts at this revision.
[[nodiscard]] const CallerRow* find_caller(const RuleSet& rules, const ModelConfig& config);

// The caller to assume when no checkpoint is at hand: the first with this selector that converts
// for this family, if one is given, and asks the oracle where the engine has one; null when there
// is none.
[[nodiscard]] const CallerRow* usual_caller(const RuleSet& rules, Selector selector,
                                            std::optional<Family> family);

// The converter's family: the given one, else the caller's, else the selector's usual one.
[[nodiscard]] Family family_of(const CallerRow* caller, std::optional<Family> given,
                               Selector selector);

// The model as far as a decision and its notes depend on it.
struct ModelFacts {
  const CallerRow* caller = nullptr;  // null: no checkpoint
  std::optional<Family> family{};     // of the converter, where the user names it
  std::optional<bool> biases{};       // empty: not known
  std::optional<bool> input_scales{};
};

// The oracle's answer, or the caller's own where it does not ask; with notes. With a `forced`
// backend the oracle is not asked, and one trace step says so. Throws Error::input as
// select_backend does, and Error::usage without a caller for an engine that has no oracle.
[[nodiscard]] Decision decide(const RuleSet& rules, const Deployment& deployment,
                              const ModelFacts& model, std::optional<Backend> forced = {});

// The row by which the engine puts the model's shared experts behind the routed ones of every rank, or
// stops; null if it does neither. `mxfp4`: the checkpoint holds them as MXFP4; empty: not known, and
// taken for so.
[[nodiscard]] const FusedSharedRow* fused_shared_row(const RuleSet& rules,
                                                     const Deployment& deployment,
                                                     std::optional<bool> mxfp4);

// A warning, in words, about loading a checkpoint with the backend that was selected.
struct LoadNote {
  std::string text;
  bool stops = false;  // the engine does not serve: it ends at its start or while it loads
};

// The notes of a decision, as decide() says them in Decision::notes.
[[nodiscard]] std::vector<LoadNote> load_notes(const RuleSet& rules, const Deployment& deployment,
                                               const ModelFacts& model, const Decision& decision);

// The knob that names the type of activations for which the converter packs, and its value where
// checkpoint or override tell it; "none": BF16.
struct InputDtype {
  std::string_view knob;
  std::optional<std::string> value{};  // empty: not known, as where the process's variable is set
};

// Empty where the release's converter asks neither checkpoint nor override. A null caller
// means an input that is loaded already: what its checkpoint said is not known.
[[nodiscard]] std::optional<InputDtype> input_dtype(const RuleSet& rules,
                                                    const Deployment& deployment,
                                                    const CallerRow* caller, const Target& target);

// Requires a decision with a backend.
[[nodiscard]] Target make_target(const Deployment& deployment, const Decision& decision,
                                 Family family);

// The known defects of the reference for this conversion, one line each, in words.
[[nodiscard]] std::vector<std::string> defect_notes(const RuleSet& rules, const DefectFacts& facts);

// What the engine calls a parameter that a blob calls otherwise, by the blob's name.
[[nodiscard]] std::map<std::string, std::string> parameter_names(const RuleSet& rules,
                                                                 const CallerRow* caller,
                                                                 Backend backend);

// The model types whose own file takes this moe_backend without the oracle (RuleSet::model_backends).
// Source: vLLM 0.33.0 models/deepseek_v4, models/deepseek_v41, models/kimi_k3.
[[nodiscard]] std::vector<std::string_view> models_that_ask(const RuleSet& rules,
                                                            std::string_view moe_backend);

// The first row of a method class; null where these rules have none of this name.
[[nodiscard]] const CallerRow* find_method(const RuleSet& rules, std::string_view method);

// Whether the class rounds sizes for the backend; null: a class that is not known, which rounds.
[[nodiscard]] bool rounds_sizes(const CallerRow* caller, Backend backend);

// The multiples that the backend rounds H and I up to for this caller; 1: unchanged.
[[nodiscard]] LayerDims rounding_multiples(const RuleSet& rules, const CallerRow* caller,
                                           const Target& target);

}  // namespace mxfp4
