// The versions of kernel libraries that revisions ask for, and what another version means.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/oracle/rule_set.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {

// "flashinfer 0.6.18, triton_kernels 3.5.1 (CUDA)"
[[nodiscard]] std::string pins_text(std::span<const LibraryPin> pins);

// A version of a library that is not the one whose layouts a revision has.
struct OtherVersion {
  const LibraryPin* pin;    // the revision's own
  const Release* made_for;  // the newest release that pins the told version; null when none does
};

// `package` as the rules spell it. Builds and post-releases of a version ("0.6.11.post2",
// "0.6.11+cu129") have its layouts. Nothing when the revision pins no version of the package, or
// none on `platform`; an unknown platform may be any.
[[nodiscard]] std::optional<OtherVersion> other_version(const RuleSet& rules,
                                                        std::string_view package,
                                                        std::string_view version,
                                                        std::optional<Platform> platform);

}  // namespace mxfp4
