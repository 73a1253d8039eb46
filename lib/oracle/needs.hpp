// Changes of the serving process or machine that meet a condition: found by trying the values that
// the condition's own facts name, and proven by asking it again.
//
// Usage:
//   const Asker asker{rules, request, caller, config};
//   for (const ConditionAnswer& answer : examine_class(asker, "MarlinExperts", {})) ...
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/oracle/condition.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// One fact of a request with another value; an empty value: not set, absent, off.
struct Change {
  FactKind kind;
  std::string name{};  // of a package or variable
  std::optional<std::string> value{};

  friend bool operator==(const Change&, const Change&) = default;
};

// The arguments of resolve_deployment.
struct Asker {
  const RuleSet& rules;
  const DeploymentFacts& request;
  const CallerRow* caller = nullptr;    // null: no checkpoint
  const ModelConfig* config = nullptr;  // null: no checkpoint
};

struct ConditionAnswer {
  std::string_view topic;  // "device", "routing", ...
  std::string_view text;
  bool met = false;
  // All of them together meet it. Empty: it is met, or only another model meets it.
  std::vector<Change> needs{};
};

// The request after the changes. A package is taken from, or added to, those that `asker` resolves.
[[nodiscard]] DeploymentFacts with_changes(const Asker& asker, const std::vector<Change>& changes);

// Every condition of a class, conjunctions taken apart, when it is asked with this activation key.
// Conditions that always hold are left out.
[[nodiscard]] std::vector<ConditionAnswer> examine_class(const Asker& asker,
                                                         std::string_view class_name,
                                                         std::optional<std::string_view> key);

// A class that the oracle tried, with its conditions.
struct Candidate {
  TraceStep step;
  std::optional<Backend> backend{};  // the one that it was tried for; empty: the class has no rules
  std::vector<ConditionAnswer> conditions{};
  std::vector<Change> needs{};  // with these the class supports the deployment; empty: it does
                                // without, or none are known
};

// The classes of a decision's trace, in its order.
[[nodiscard]] std::vector<Candidate> examine_trace(const Asker& asker, const Decision& decision);

// Changes after which all conditions of a class hold; empty where none were found.
[[nodiscard]] std::vector<Change> class_needs(const Asker& asker, std::string_view class_name,
                                              std::optional<std::string_view> key);

// Whether the class supports what is asked for, after the changes.
[[nodiscard]] bool class_supports(const Asker& asker, const std::vector<Change>& changes,
                                  std::string_view class_name, std::optional<std::string_view> key);

}  // namespace mxfp4
