// Looks up names in what flags and the --target file say of the serving machine and process. A name
// that no rule knows is an error in a flag, and a warning in the file, which a probe wrote.
#pragma once

#include <string>
#include <vector>

#include "apps/console.hpp"
#include "apps/options.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/decision/decide.hpp"
#include "lib/oracle/resolve.hpp"

namespace mxfp4 {

// The release that --revision, else the --target file, else the blob that is the input says; empty:
// the newest.
[[nodiscard]] std::string release_asked(const RequestFlags& options,
                                        const std::optional<Manifest>& blob);

// The --target file's facts without the packages that the rules do not know.
[[nodiscard]] DeploymentFacts target_facts(const RequestFlags& options, const RuleSet& rules);

// Adds the packages of --libs, "flashinfer,humming==0.1.10", and those that every --no-lib says are
// absent. Throws Error::usage for an unknown one, and for one that both flags name.
void take_libs(const RequestFlags& options, const RuleSet& rules, DeploymentFacts& request);

// The variables of --env. Throws Error::usage for one that no rule of any revision looks at.
[[nodiscard]] std::map<std::string, std::string> take_env(const std::vector<std::string>& items);

// Replaces the machine's name in `request` by its architecture as the rules spell it. Throws
// Error::usage, or Error::input naming the --target file, with the nearest names.
void take_machine(const RequestFlags& options, DeploymentFacts& request);

// `fault`: the arch is of another platform, or is missing. The result names the flags, or the
// --target file and its members: a machine never comes from both.
[[nodiscard]] Error platform_fault(const RequestFlags& options, const Error& fault);

// The machine's name, "H100", if --arch or the file gave it instead of an architecture; else empty.
[[nodiscard]] std::string machine_as_given(const RequestFlags& options);

// Says on stderr which rules were taken if neither --revision nor the --target file says which
// engine serves, or if it is newer than all that are known.
void report_assumed_rules(const RequestFlags& options, const RuleSet& rules,
                          const std::optional<Manifest>& blob, const Console& console);

// Says on stderr which architecture a machine's name was taken for, and warns of facts in flags and
// in the --target file that have no effect.
void report_given_facts(const RequestFlags& options, const RuleSet& rules, const Console& console);

// Versions of kernel libraries with which the conversion's layout was not tested: Error::usage if
// they come from --libs, a warning if from the --target file.
void require_tested_versions(const RequestFlags& options, const Conversion& conversion);
void report_given_versions(const RequestFlags& options, const Conversion& conversion,
                           const Console& console);

}  // namespace mxfp4
