// Makes the request of a conversion from flags, and says what of them has no effect. Errors name the
// flag, or the --target file; formats/decision/request_json.hpp reads the members.
#pragma once

#include <optional>
#include <string>

#include "apps/console.hpp"
#include "apps/options.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/decision/decide.hpp"
#include "formats/decision/request_json.hpp"

namespace mxfp4 {

// In what follows `blob` is the input, if that is a blob: what neither flags nor the --target file
// say is as it was made for.

// The name of the release that serves, and its rules; the newest known ones stand for a release that
// is newer.
[[nodiscard]] std::string release_of(const RequestFlags& flags,
                                     const std::optional<Manifest>& blob);
[[nodiscard]] const RuleSet& rules_for(const RequestFlags& flags,
                                       const std::optional<Manifest>& blob);

// What the flags, the --target file and the blob ask, with the checkpoint to open. Throws Error::usage
// and Error::input naming the flag or the file.
[[nodiscard]] CheckpointRequest request_from(const RequestFlags& flags, const RuleSet& rules,
                                             const std::optional<Manifest>& blob);

// The rules of --revision and --engine of `list` and --against; says on stderr if they stand for a
// newer release.
[[nodiscard]] const RuleSet& rules_named(const std::string& engine, const std::string& name,
                                         const Console& console);

// Throws Error::usage if OUT is an address.
void require_local(const std::filesystem::path& out);

// The hint of a deployment that no backend serves.
inline constexpr const char* kExplainHint =
    "mxfp4-repack explain shows every candidate and its reason";

// Calls decide_conversion. Errors name the flag or the --target file that is wrong; a refusal of the
// oracle gets a hint.
[[nodiscard]] Conversion conversion_for(const RequestFlags& flags, const ConversionRequest& request,
                                        const OpenedCheckpoint* checkpoint);

// Says on stderr which architecture a machine's name was taken for, and warns of facts in flags and
// in the --target file that have no effect.
void report_given_facts(const RequestFlags& flags, const RuleSet& rules, const Console& console);

// Says on stderr which rules were taken if neither --revision nor the --target file says which
// engine serves, or if it is newer than all that are known.
void report_rules(const RequestFlags& flags, const RuleSet& rules,
                  const std::optional<Manifest>& blob, const Console& console);

// Versions of kernel libraries with which the conversion's layout was not tested: Error::usage if
// they come from --libs, a warning if from the --target file.
void report_versions(const RequestFlags& flags, const Conversion& conversion,
                     const Console& console);

}  // namespace mxfp4
