// Versions of kernel libraries by layout: those whose own code was executed and gave the layout's
// bytes (testdata/engines/layouts.json, testdata/golden).
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lib/layouts/layout.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

struct TestedLibrary {
  const Layout* layout = nullptr;
  std::string_view library;                // "flashinfer"
  std::vector<std::string_view> versions;  // oldest first
};

[[nodiscard]] std::span<const TestedLibrary> tested_libraries();

// The versions with which every layout of these rules that depends on the library was tested, oldest
// first. Nothing when no layout of the table depends on it.
[[nodiscard]] std::optional<std::vector<std::string_view>> tested_versions(
    const RuleSet& rules, std::string_view library);

}  // namespace mxfp4
