#include "apps/request.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "apps/usage_errors.hpp"
#include "lib/core/error.hpp"
#include "lib/core/suggest.hpp"
#include "lib/layouts/output.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/machines.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/fact_uses.hpp"
#include "lib/revisions/revisions.hpp"
#include "lib/revisions/tested_libraries.hpp"

namespace mxfp4 {
namespace {

const Manifest* pointer_to(const std::optional<Manifest>& blob) { return blob ? &*blob : nullptr; }

// The error about a member of the request as one about the flag, or the --target file, that says it. An
// error about the checkpoint names its file already.
Error named_by_flag(const RequestFlags& flags, const Error& error) {
  const std::string& key = error.key();
  const auto typed = [&](const std::string& name) { return flags.members.contains(name); };
  const bool machine = key == "platform" || key == "arch";
  if (!error.file().empty()) return error;
  if (key.empty() && error.message().starts_with("knob ")) {  // "knob NAME: ..."
    return Error::usage("--" + error.message());
  }
  if (typed(key) || (machine && (typed("platform") || typed("arch")))) {
    return Error::usage(error.message()).at_key(flag_of(key)).hint(error.hint_text());
  }
  if (!machine || flags.target.path.empty()) return error;
  // The file is wrong only if it contradicts itself: what it lacks, a flag can add.
  const bool said = flags.target.facts.arch && (key == "arch" || flags.target.facts.platform);
  Error named = said ? Error::input(error.message()).at_key(key).hint(error.hint_text()) : error;
  return named.in_file(flags.target.path.string());
}

template <class Body>
auto by_flag(const RequestFlags& flags, const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const Error& error) {
    throw named_by_flag(flags, error);
  }
}

// Of names near a known one, which may be a slip, and of those of which a flag says more. Others are the
// engine's own, and decide nothing.
void check_variables(const RequestFlags& flags) {
  const std::set<std::string> known = variables_of_all_revisions();
  const std::vector<std::string> names(known.begin(), known.end());
  for (const std::string& name : flags.variables()) {
    if (known.contains(name)) continue;
    const std::string_view answer = engine_word(name);
    const std::string nearest = nearest_word(name, names);
    if (answer.empty() && nearest.empty()) continue;
    throw Error::usage(fmt::format("--env: no rule looks at '{}'", name))
        .hint(answer.empty() ? fmt::format("did you mean {}?", nearest) : std::string(answer));
  }
}

bool is_alias(const RuleSet& rules, const std::string& name) {
  return std::ranges::find(rules.aliases, name, &AliasRow::name) != rules.aliases.end();
}

// Throws Error::usage for a name that no release knows.
void check_moe_backend(const RequestFlags& flags, const RuleSet& rules) {
  const std::string text = flags.text("moe_backend");
  const std::string name = normalize_moe_backend(text);
  const auto knows = [&](const Release* release) {
    const RuleSet& there = rules_of(*release);
    return is_alias(there, name) || moe_backend_option(there, name).has_value();
  };
  if (text.empty() || name == "auto" || std::ranges::any_of(all_releases(), knows)) return;
  std::vector<std::string> known{"auto"};
  for (const AliasRow& alias : rules.aliases) known.emplace_back(alias.name);
  throw Error::usage(fmt::format("--moe-backend: unknown name '{}'", text))
      .hint(nearest_hint(name, known));
}

// The refusal of a name that the engine knows, but for which these rules have no MXFP4 backend. Empty
// for other names.
std::optional<Error> no_moe_backend(const RuleSet& rules, const std::string& name) {
  if (name == "auto" || is_alias(rules, name)) return std::nullopt;
  if (const auto models = models_that_ask(rules, name); !models.empty()) {
    return Error::unsupported(fmt::format("--moe-backend {}: outside the oracle, for models that "
                                          "take it themselves: {}",
                                          name, fmt::join(models, ", ")))
        .hint("the checkpoint's model_type and the platform decide whether this one does");
  }
  std::string hint = "mxfp4-repack list backends shows the names of each";
  for (const Release* release : releases_of(rules.engine)) {  // the newest is the last
    if (is_alias(rules_of(*release), name))
      hint = fmt::format("--revision {} has one", release->name);
  }
  return Error::unsupported(fmt::format("--moe-backend {}: {} has no MXFP4 backend of this name",
                                        name, rules.name))
      .hint(hint);
}

// The engine's refusal without its list of all candidates and reasons, which explain shows better.
std::string without_candidates(const std::string& message) {
  std::string text = message.substr(0, message.find(" Candidate backends were: "));
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

std::string newer_words(const std::string& name) {
  if (!is_newer_release(name)) return "";
  return fmt::format(
      "{} is newer than {}, the newest known release, whose rules are taken: the engine's "
      "first start proves them, in the time and memory of its own load",
      name, newest_release(engine_of_revision(name)).name);
}

// Why the layout should not be trusted with this version, with the way out as hint; empty if it may.
std::optional<Error> version_fault(const Conversion& conversion, const std::string& package,
                                   const std::string& version) {
  const auto untested = untested_version(*conversion.rules, conversion.layout, package, version,
                                         conversion.deployment.platform);
  if (!untested) return std::nullopt;
  std::string hint =
      fmt::format("tested with {} {}", untested->library, fmt::join(untested->tested, ", "));
  if (!untested->pinned.empty()) {
    hint += fmt::format("; without a version {} means {}", package, untested->pinned);
  }
  if (untested->made_for != nullptr && untested->made_for->name != conversion.rules->name) {
    hint = fmt::format("--revision {} is made for that version", untested->made_for->name);
  }
  return Error::usage(fmt::format("{} {}: {} was not tested with it", package, version,
                                  id_of(*conversion.layout)))
      .at_key("--libs")
      .hint(hint);
}

}  // namespace

std::string release_of(const RequestFlags& flags, const std::optional<Manifest>& blob) {
  return by_flag(
      flags, [&] { return release_asked(flags.members, flags.target.facts, pointer_to(blob)); });
}

const RuleSet& rules_for(const RequestFlags& flags, const std::optional<Manifest>& blob) {
  const std::string name = release_of(flags, blob);
  if (name != flags.target.facts.engine_version) return revision_by_name(name);
  return in_context("--target", [&]() -> const RuleSet& { return revision_by_name(name); });
}

const RuleSet& rules_named(const std::string& engine, const std::string& name,
                           const Console& console) {
  const std::string release = release_named(engine, name);
  if (const std::string newer = newer_words(release); !newer.empty()) console.note(newer);
  return revision_by_name(release);
}

CheckpointRequest request_from(const RequestFlags& flags, const RuleSet& rules,
                               const std::optional<Manifest>& blob) {
  check_variables(flags);
  check_moe_backend(flags, rules);
  CheckpointRequest asked = by_flag(flags, [&] {
    return read_request(flags.members, flags.target.facts, rules, pointer_to(blob));
  });
  asked.checkpoint.path = flags.path;
  if (!flags.model_config.path.empty()) {
    asked.checkpoint.config_text = flags.model_config.text;
    asked.checkpoint.config_path = flags.model_config.path;
  }
  return asked;
}

void require_local(const std::filesystem::path& out) {
  if (out.string().find("://") == std::string::npos) return;
  throw Error::usage(
      fmt::format("--output: {}: an address; only convert without --shard writes to one, s3://...",
                  out.string()))
      .hint("write to a local directory, then copy it there");
}

Conversion conversion_for(const RequestFlags& flags, const ConversionRequest& request,
                          const OpenedCheckpoint* checkpoint) {
  Conversion decided = by_flag(flags, [&] { return decide_conversion(request, checkpoint); });
  if (!decided.refusal || decided.decision.backend) return decided;
  if (decided.decision.direct) return decided;  // the engine's own words say what to do
  Error& refusal = *decided.refusal;
  const std::string type = refusal.reference_type_name();
  const auto unknown = no_moe_backend(*decided.rules, decided.deployment.moe_backend);
  refusal = unknown ? *unknown
                    : Error::unsupported(without_candidates(refusal.message())).hint(kExplainHint);
  refusal.reference_type(type);
  return decided;
}

void report_given_facts(const RequestFlags& flags, const RuleSet& rules, const Console& console) {
  const DeploymentFacts& target = flags.target.facts;
  const std::string typed = flags.text("arch");
  const std::string given = typed.empty() ? target.arch.value_or("") : typed;
  if (const Machine* machine = find_machine(given)) {
    const std::string taken = taken_arch(*machine, flags.members.contains("backend"));
    if (taken != given) {
      console.note(fmt::format("{} {}: taken as {}{}", typed.empty() ? "arch" : "--arch", given,
                               taken,
                               taken == machine->arch ? "" : "; --arch x86_64-amx if it has AMX"));
    }
  }
  const std::set<std::string> known = variables_of(rules);
  const auto warn_of = [&](std::string_view place, const std::string& name) {
    if (known.contains(name)) return;
    const std::string_view answer = engine_word(name);
    console.warn(fmt::format("{}: no rule of {} looks at {}{}{}", place, rules.name, name,
                             answer.empty() ? "" : ": ", answer));
  };
  for (const std::string& name : flags.variables()) warn_of("--env", name);
  const std::string file = flags.target.path.string();
  for (const auto& [name, value] : target.env) warn_of(file + ": env", name);
  if (flags.members.contains("libs")) return;  // the flag replaces the file's list
  for (const std::string& name : target.libs.value_or(std::set<std::string>())) {
    if (is_package(rules, name)) continue;
    console.warn(
        fmt::format("{}: libs: {}: {} knows no such kernel package", file, name, rules.name));
  }
}

void report_rules(const RequestFlags& flags, const RuleSet& rules,
                  const std::optional<Manifest>& blob, const Console& console) {
  const std::string name = release_of(flags, blob);
  if (!flags.members.contains("revision") && !flags.target.facts.engine_version) {
    const bool of_blob = blob && name == blob->revision;
    console.note(fmt::format("no --revision: taking {}, {}", rules.name,
                             of_blob ? "as the blob was made for" : "the newest known release"));
  }
  if (const std::string newer = newer_words(name); !newer.empty()) console.note(newer);
}

void report_versions(const RequestFlags& flags, const Conversion& conversion,
                     const Console& console) {
  std::map<std::string, std::string> versions = flags.target.facts.lib_versions;
  const bool typed = flags.members.contains("libs");
  if (typed) {  // the flag replaces the file's list
    const nlohmann::json libs = {{"libs", flags.members.at("libs")}};
    versions = read_request(libs, {}, *conversion.rules).request.deployment.lib_versions;
  }
  for (const auto& [package, version] : versions) {
    const auto fault = version_fault(conversion, package, version);
    if (!fault) continue;
    if (typed) throw Error(*fault);
    console.warn(fmt::format("{}: libs: {}; {}", flags.target.path.string(), fault->message(),
                             fault->hint_text()));
  }
}

}  // namespace mxfp4
