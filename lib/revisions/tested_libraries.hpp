// Versions of kernel libraries by layout: those whose own code was executed and gave the layout's
// bytes (testdata/engines/layouts.json, testdata/golden).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/oracle/rule_set.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {

struct TestedLibrary {
  const Layout* layout = nullptr;
  std::string_view library;                // "flashinfer"
  std::vector<std::string_view> versions;  // oldest first
};

[[nodiscard]] std::span<const TestedLibrary> tested_libraries();

// The version that a revision pins of a package's library; null if it pins none.
[[nodiscard]] const LibraryPin* pin_of(std::span<const LibraryPin> pins, std::string_view package);

// "flashinfer 0.6.18, triton_kernels 3.5.1 (CUDA)"
[[nodiscard]] std::string pins_text(std::span<const LibraryPin> pins);

// A version of a library that the layout's bytes depend on, with which the layout was not tested.
struct UntestedVersion {
  std::string_view library;              // as distributions spell it: "humming-kernels"
  std::vector<std::string_view> tested;  // versions that would do
  std::string_view pinned;               // the revision's own; empty: it pins none
  const Release* made_for;               // the engine's newest release that pins it, or null
};

// `package` as the rules spell it. Empty when the given version will do: the layout does not depend
// on the library, the revision pins the version, or the layout was tested with it. Builds and
// post-releases of a version ("0.6.11.post2", "0.6.11+cu129") have its layouts. `layout` may be
// null: none was chosen, and nothing depends on a library. `platform` is where a pin counts; an
// unknown one may be any.
[[nodiscard]] std::optional<UntestedVersion> untested_version(const RuleSet& rules,
                                                              const Layout* layout,
                                                              std::string_view package,
                                                              std::string_view version,
                                                              std::optional<Platform> platform);

}  // namespace mxfp4
