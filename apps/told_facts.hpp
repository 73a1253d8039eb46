// What flags and the --target file say of the serving machine and process: names are looked up, and
// what no rule knows is an error in a flag and a warning in a file, which a probe wrote.
#pragma once

#include <string>
#include <vector>

#include "apps/console.hpp"
#include "apps/options.hpp"
#include "formats/conversion/decide.hpp"
#include "lib/oracle/resolve.hpp"

namespace mxfp4 {

// The --target file's facts without the packages that the rules do not know.
[[nodiscard]] DeploymentFacts target_facts(const RequestFlags& options, const RuleSet& rules);

// --libs: "flashinfer,humming==0.1.10". Throws Error::usage for a package that is not known.
void take_libs(const RequestFlags& options, const RuleSet& rules, DeploymentFacts& request);

// --no-lib, any number of times. Throws Error::usage for a package that is not known.
[[nodiscard]] std::set<std::string> take_absent_libs(const std::vector<std::string>& names,
                                                     const RuleSet& rules);

// --env. Throws Error::usage for a variable that no rule of any revision looks at.
[[nodiscard]] std::map<std::string, std::string> take_env(const std::vector<std::string>& items);

// Replaces the machine's name by its architecture as the rules spell it. `request` is complete: flags
// and file. Throws Error::usage, or Error::input naming the file, with the nearest names.
void take_machine(const RequestFlags& options, DeploymentFacts& request);

// "H100" where --arch or the file said that in place of the architecture's own name; else empty.
[[nodiscard]] std::string machine_as_told(const RequestFlags& options);

// Whether neither --revision nor the --target file says which vLLM serves.
[[nodiscard]] bool rules_assumed(const RequestFlags& options);
// Then says on stderr which rules were taken.
void report_assumed_rules(const RequestFlags& options, const RuleSet& rules,
                          const Console& console);

// Says on stderr what was taken for the machine's name, and warns of what the --target file or a
// flag says to no effect.
void report_told_facts(const RequestFlags& options, const RuleSet& rules, const Console& console);

// Kernel libraries with versions that the conversion's layout was not tested with: in --libs
// Error::usage, in the --target file a warning.
void require_tested_versions(const RequestFlags& options, const Conversion& conversion);
void report_told_versions(const RequestFlags& options, const Conversion& conversion,
                          const Console& console);

}  // namespace mxfp4
