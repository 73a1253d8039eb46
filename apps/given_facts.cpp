#include "apps/given_facts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "apps/known_names.hpp"
#include "apps/parsers.hpp"
#include "apps/suggest.hpp"
#include "apps/usage_errors.hpp"
#include "formats/decision/decide.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/output.hpp"
#include "lib/oracle/machines.hpp"
#include "lib/revisions/fact_uses.hpp"
#include "lib/revisions/tested_libraries.hpp"

namespace mxfp4 {
namespace {

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> items;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    size_t first = begin;
    size_t last = end;
    while (first < last && text[first] == ' ') ++first;
    while (last > first && text[last - 1] == ' ') --last;
    if (last > first) items.push_back(text.substr(first, last - first));
    begin = end + 1;
  }
  return items;
}

struct VersionFault {
  std::string what;
  std::string hint;
};

std::optional<VersionFault> version_fault(const Conversion& conversion, const std::string& package,
                                          const std::string& version) {
  const auto untested = untested_version(*conversion.rules, conversion.layout, package, version,
                                         conversion.deployment.platform);
  if (!untested) return std::nullopt;
  VersionFault fault{
      fmt::format("{} {}: {} was not tested with it", package, version, id_of(*conversion.layout)),
      fmt::format("tested with {} {}", untested->library, fmt::join(untested->tested, ", "))};
  if (!untested->pinned.empty()) {
    fault.hint += fmt::format("; without a version {} means {}", package, untested->pinned);
  }
  if (untested->made_for != nullptr && untested->made_for->name != conversion.rules->name) {
    fault.hint = fmt::format("--revision {} is made for that version", untested->made_for->name);
  }
  return fault;
}

std::vector<std::string> package_names(const RuleSet& rules) {
  return {rules.packages.begin(), rules.packages.end()};
}

void require_package(std::string_view flag, std::string_view name, const RuleSet& rules) {
  if (is_package(rules, name)) return;
  throw Error::usage(fmt::format("{}: unknown kernel package '{}'", flag, name))
      .hint(nearest_hint(name, package_names(rules)));
}

// "humming==0.1.10", "aiter": a package's name, and its version or an empty text.
std::pair<std::string, std::string> name_and_version(const std::string& item) {
  const size_t sign = item.find("==");
  if (sign == std::string::npos || sign + 2 == item.size()) return {item, ""};
  return {item.substr(0, sign), item.substr(sign + 2)};
}

// The packages in the value of --libs. Adds the versions that it names to `versions`.
std::set<std::string> listed_libs(const std::string& text, const RuleSet& rules,
                                  std::map<std::string, std::string>& versions) {
  std::set<std::string> libs;
  if (text == kNoLibs) return libs;
  const std::vector<std::string> items = split_list(text);
  if (items.empty()) {
    throw Error::usage(fmt::format("--libs: '{}' names no package", text))
        .hint(fmt::format("--libs {} means no package", kNoLibs));
  }
  for (const std::string& item : items) {
    const auto [name, version] = name_and_version(item);
    require_package("--libs", name, rules);
    libs.insert(name);
    if (!version.empty()) versions.emplace(name, version);
  }
  return libs;
}

// A variable that other revisions look at: what says the same with these rules.
std::string unread_variable(const RuleSet& rules, const std::string& name) {
  const std::string_view answer = engine_word(name);
  return fmt::format("no rule of {} looks at {}{}", rules.name, name,
                     answer.empty() ? "" : fmt::format(": {}", answer));
}

std::string taken_arch(const RequestFlags& options, const Machine& machine) {
  return taken_arch(machine, !options.backend.empty());
}

const Machine* machine_of(const DeploymentFacts& request) {
  return request.arch ? find_machine(*request.arch) : nullptr;
}

}  // namespace

std::string release_asked(const RequestFlags& options, const std::optional<Manifest>& blob) {
  const std::optional<std::string>& version = options.target_file.facts().engine_version;
  if (options.revision.empty()) {
    if (version && engine_fits(options.engine, *version)) return *version;
    if (!version && blob && engine_fits(options.engine, blob->revision)) return blob->revision;
  }
  return revision_of_engine(options.engine, options.revision);
}

DeploymentFacts target_facts(const RequestFlags& options, const RuleSet& rules) {
  DeploymentFacts facts = options.target_file.facts();
  if (facts.libs)
    std::erase_if(*facts.libs, [&](const auto& lib) { return !is_package(rules, lib); });
  if (facts.arch && facts.arch->empty()) facts.arch.reset();
  return facts;
}

void take_libs(const RequestFlags& options, const RuleSet& rules, DeploymentFacts& request) {
  if (!options.libs.empty()) request.libs = listed_libs(options.libs, rules, request.lib_versions);
  for (const std::string& name : options.no_libs) {
    require_package("--no-lib", name, rules);
    if (request.libs && request.libs->contains(name)) {
      throw Error::usage(
          fmt::format("--libs and --no-lib contradict each other: both name {}", name))
          .hint("--libs lists what is there, --no-lib what is not");
    }
    request.absent_libs.insert(name);
  }
}

std::map<std::string, std::string> take_env(const std::vector<std::string>& items) {
  std::map<std::string, std::string> env = parse_pairs(items, "--env");
  if (env.empty()) return env;
  const std::set<std::string> known = variables_of_all_revisions();
  const std::vector<std::string> names(known.begin(), known.end());
  for (const auto& [name, value] : env) {
    if (known.contains(name)) continue;
    // One near a known one may be a slip, and of some a flag says more; others decide nothing.
    if (engine_word(name).empty() && nearest_word(name, names).empty()) continue;
    const std::string_view answer = engine_word(name);
    throw Error::usage(fmt::format("--env: no rule looks at '{}'", name))
        .hint(answer.empty() ? nearest_hint(name, names) : std::string(answer));
  }
  return env;
}

void take_machine(const RequestFlags& options, DeploymentFacts& request) {
  if (!request.arch) return;
  if (const Machine* machine = machine_of(request)) {
    request.arch = taken_arch(options, *machine);
    return;
  }
  if (request.platform && !has_capability(*request.platform)) return;  // no rule reads the name
  const std::string what = fmt::format("unknown machine '{}'", *request.arch);
  const std::string hint =
      nearest_hint(*request.arch, machine_words(), "list machines shows the names");
  if (!options.arch.empty()) throw Error::usage("--arch: " + what).hint(hint);
  throw Error::input(what).at_key("arch").in_file(options.target_file.path().string()).hint(hint);
}

Error platform_fault(const RequestFlags& options, const Error& fault) {
  const bool typed = !options.platform.empty() || !options.arch.empty();
  if (typed) return Error::usage(fault.message()).at_key("--platform").hint(fault.hint_text());
  const DeploymentFacts& target = options.target_file.facts();
  // The file is wrong only if it contradicts itself: what it lacks, a flag can add.
  const bool contradicts = target.platform && !target.arch.value_or("").empty();
  Error error = contradicts ? Error::input(fault.message()).at_key("platform") : Error(fault);
  return error.in_file(options.target_file.path().string());
}

std::string machine_as_given(const RequestFlags& options) {
  const std::string given =
      !options.arch.empty() ? options.arch : options.target_file.facts().arch.value_or("");
  const Machine* machine = find_machine(given);
  return machine == nullptr || taken_arch(options, *machine) == given ? "" : given;
}

void report_assumed_rules(const RequestFlags& options, const RuleSet& rules,
                          const std::optional<Manifest>& blob, const Console& console) {
  const std::string name = release_asked(options, blob);
  const bool of_blob = blob && name == blob->revision;
  if (options.revision.empty() && !options.target_file.facts().engine_version) {
    console.note(fmt::format("no --revision: taking {}, {}", rules.name,
                             of_blob ? "as the blob was made for" : "the newest known release"));
  }
  if (const std::string newer = newer_words(name); !newer.empty()) console.note(newer);
}

void report_given_facts(const RequestFlags& options, const RuleSet& rules, const Console& console) {
  const DeploymentFacts& target = options.target_file.facts();
  const std::string given = machine_as_given(options);
  if (!given.empty()) {
    const Machine& machine = *find_machine(given);
    const std::string taken = taken_arch(options, machine);
    std::string note =
        fmt::format("{} {}: taken as {}", options.arch.empty() ? "arch" : "--arch", given, taken);
    if (taken != machine.arch) note += "; --arch x86_64-amx if it has AMX";
    console.note(note);
  }
  const std::set<std::string> known = variables_of(rules);
  for (const auto& [name, value] : take_env(options.env)) {
    if (known.contains(name)) continue;
    console.warn("--env: " + unread_variable(rules, name));
  }
  const std::string file = options.target_file.path().string();
  for (const auto& [name, value] : target.env) {
    if (known.contains(name)) continue;
    console.warn(fmt::format("{}: env: no rule looks at '{}'", file, name));
  }
  if (!options.libs.empty()) return;  // the flag replaces the file's list
  for (const std::string& name : target.libs.value_or(std::set<std::string>())) {
    if (is_package(rules, name)) continue;
    console.warn(
        fmt::format("{}: libs: {}: {} knows no such kernel package", file, name, rules.name));
  }
}

void require_tested_versions(const RequestFlags& options, const Conversion& conversion) {
  for (const std::string& item : split_list(options.libs)) {
    const auto [name, version] = name_and_version(item);
    const auto fault = version.empty() ? std::nullopt : version_fault(conversion, name, version);
    if (fault) throw Error::usage("--libs: " + fault->what).hint(fault->hint);
  }
}

void report_given_versions(const RequestFlags& options, const Conversion& conversion,
                           const Console& console) {
  if (!options.libs.empty()) return;  // the flag replaces the file's list
  for (const auto& [name, version] : options.target_file.facts().lib_versions) {
    const auto fault = version_fault(conversion, name, version);
    if (!fault) continue;
    console.warn(fmt::format("{}: libs: {}; {}", options.target_file.path().string(), fault->what,
                             fault->hint));
  }
}

}  // namespace mxfp4
