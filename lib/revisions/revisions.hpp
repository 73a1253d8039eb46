// The list of engine revisions.
#pragma once

#include <span>
#include <string_view>

#include "lib/layouts/layout.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// All revisions, oldest first.
[[nodiscard]] std::span<const RuleSet* const> all_revisions();
[[nodiscard]] const RuleSet& default_revision();
// Throws Error::usage, naming the known ones.
[[nodiscard]] const RuleSet& revision_by_name(std::string_view name);

// Every layout that any revision's table names, each once, ordered by id; also those that only
// older revisions use.
[[nodiscard]] std::span<const Layout* const> all_layouts();
// Null when there is none. Blobs are read by this id alone.
[[nodiscard]] const Layout* layout_by_id(std::string_view id);

}  // namespace mxfp4
