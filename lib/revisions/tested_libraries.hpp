// Versions of kernel libraries by layout: those whose own code was executed and gave the layout's
// bytes (testdata/engines/layouts.json, testdata/golden).
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lib/layouts/layout.hpp"
#include "lib/oracle/rule_set.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {

struct TestedLibrary {
  const Layout* layout = nullptr;
  std::string_view library;                // "flashinfer"
  std::vector<std::string_view> versions;  // oldest first
};

[[nodiscard]] std::span<const TestedLibrary> tested_libraries();

// A version of a library with which a layout was not tested.
struct UntestedVersion {
  const LibraryPin* pin;                 // the revision's own version of the library
  std::vector<std::string_view> tested;  // versions that would do
  const Release* made_for;               // the newest release that pins the told version, or null
};

// `package` as the rules spell it. Empty when the told version will do: the revision pins it, the
// layout was tested with it, or the layout does not depend on the library and some layout was tested
// with the version or some release pins it. Builds and post-releases of a version ("0.6.11.post2",
// "0.6.11+cu129") have its layouts. Empty too when the revision pins no version of the package, or
// none on `platform`; an unknown platform may be any. `layout` may be null: none was chosen.
[[nodiscard]] std::optional<UntestedVersion> untested_version(const RuleSet& rules,
                                                              const Layout* layout,
                                                              std::string_view package,
                                                              std::string_view version,
                                                              std::optional<Platform> platform);

}  // namespace mxfp4
