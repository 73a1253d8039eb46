// A condition is a value: the words that say it and the function that tests it. A check is a
// condition that a candidate must meet, with the reason given when it does not.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/fact_kind.hpp"

namespace mxfp4 {

struct Question;

// A package or a variable of the serving process that a condition looks at.
struct AskedName {
  FactKind kind;  // kPackage or kVariable
  std::string_view name;
};

struct Condition {
  std::string text;  // "platform cuda and package flashinfer"
  std::function<bool(const Question&)> holds;
  std::vector<AskedName> asked{};
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
