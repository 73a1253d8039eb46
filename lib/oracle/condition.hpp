// A condition is a value: the words that say it and the function that tests it. A check is a
// condition that a candidate must meet, with the reason given when it does not.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/fact_kind.hpp"

namespace mxfp4 {

struct Question;

// A fact of the serving process that a condition looks at, with the values that may decide it.
struct Fact {
  FactKind kind;
  std::string_view name{};                                // of a package or variable
  std::vector<std::optional<std::string_view>> values{};  // empty value: not set, absent, off
};

struct Condition {
  std::string text;  // "platform cuda and package flashinfer"
  std::function<bool(const Question&)> holds;
  std::vector<Fact> facts{};  // empty: only facts of the model
  // The conditions that a conjunction joins; null for any other condition.
  std::shared_ptr<const std::vector<Condition>> parts{};
  bool always_holds = false;
};

struct Check {
  std::string_view topic;  // "device", "routing", ...
  Condition passes;
  std::string_view reason;  // filled by fill_text
};

// Words appended to any reason of a class while the condition holds.
struct ReasonSuffix {
  Condition when;
  std::string_view text;
};

// A class of expert kernels. The first check that fails gives the reason of its rejection.
struct ExpertClass {
  std::string_view name;
  bool monolithic = false;  // router and experts in one kernel
  std::vector<Check> checks;
  std::optional<ReasonSuffix> suffix{};
};

}  // namespace mxfp4
