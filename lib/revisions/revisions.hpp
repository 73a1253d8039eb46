// The list of engine revisions: vLLM's releases and two commits of its main branch, and SGLang's
// releases. An engine is a chain of its own; a name says which: "sglang-0.5.23", any other
// is vLLM's.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lib/oracle/rule_set.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {

// All revisions of an engine, oldest first.
[[nodiscard]] std::span<const Release* const> releases_of(Engine engine);
// All revisions of every engine, one engine behind the other.
[[nodiscard]] std::span<const Release* const> all_releases();
// The one that a release or commit changes: the one before it in its engine's list. Null for
// the first.
[[nodiscard]] const Release* release_before(const Release& release);
// The newest release; commits of main do not count.
[[nodiscard]] const Release& newest_release(Engine engine = Engine::kVllm);
// By "vllm-0.33.0", "v0.33.0", "0.33.0", a build of one ("0.33.0+cu129", "v0.33.0-cu130"), a
// commit's name or its hash, or "sglang-0.5.23"; null when there is none.
[[nodiscard]] const Release* find_release(std::string_view name);
// Whether the name is the number of a release after the newest known one of its engine: "0.34.0",
// "v0.33.1rc2", "0.33.0.post1", "sglang-0.6.0".
[[nodiscard]] bool is_newer_release(std::string_view name);
// The engine's release whose number is nearest to the number in an unknown name; the newest release
// if the name has no number.
[[nodiscard]] const Release& nearest_release(std::string_view name);

// The rules of one revision. Built when first asked for; the reference stays valid.
[[nodiscard]] const RuleSet& rules_of(const Release& release);
[[nodiscard]] std::vector<const RuleSet*> all_revisions();
// The rules of newest_release(), for requests that do not say which release serves.
[[nodiscard]] const RuleSet& default_revision(Engine engine = Engine::kVllm);
// The rules of find_release(name); of a newer release than all, those of newest_release(): a plug-in
// proves at the engine's first start that they hold. Throws Error::usage for another name; the hint is
// the nearest release.
[[nodiscard]] const RuleSet& revision_by_name(std::string_view name);

}  // namespace mxfp4
