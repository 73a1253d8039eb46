#include "apps/known_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "apps/suggest.hpp"
#include "lib/core/text.hpp"
#include "lib/load/expert_layer.hpp"
#include "lib/oracle/model_backends.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

std::string revision_hint(const std::string& name) {
  if (!name.empty() && is_digit(name.front())) {
    if (find_release("sglang-" + name) != nullptr) {
      return fmt::format("of SGLang there is --revision sglang-{}", name);
    }
    return fmt::format("the nearest is --revision {}", nearest_release(name).name);
  }
  std::vector<std::string> known;  // newest first
  for (const Release* release : releases_of(engine_of_revision(name))) {
    known.emplace(known.begin(), release->name);
  }
  return nearest_hint(name, known, "list revisions shows the names");
}

bool is_alias(const RuleSet& rules, const std::string& name) {
  return std::ranges::find(rules.aliases, name, &AliasRow::name) != rules.aliases.end();
}

// Whether the engine knows the name, even if it refuses it with a reason.
bool knows_moe_backend(const RuleSet& rules, const std::string& name) {
  return name == "auto" || is_alias(rules, name) || moe_backend_option(rules, name).has_value();
}

}  // namespace

bool engine_fits(const std::string& engine, const std::string& revision) {
  const std::optional<Engine> wanted = engine_from_name(engine);
  return !wanted || engine_of_revision(revision) == *wanted;
}

std::string revision_of_engine(const std::string& engine, const std::string& name) {
  const std::optional<Engine> wanted = engine_from_name(engine);
  if (!wanted) return name;
  const std::string prefix = engine + "-";
  if (name.empty()) return std::string(newest_release(*wanted).name);
  if (name.starts_with(prefix)) return name;
  const std::string number = name.front() == 'v' ? name.substr(1) : name;
  const bool bare = !number.empty() && is_digit(number.front());
  if (bare) return *wanted == Engine::kVllm ? name : prefix + number;
  throw Error::usage(fmt::format("--engine {} contradicts the revision {}", engine, name))
      .hint(fmt::format("the newest of {} is {}", engine_title(*wanted),
                        newest_release(*wanted).name));
}

const RuleSet& rules_named(const std::string& name) {
  if (name.empty()) return default_revision();
  try {
    return revision_by_name(name);
  } catch (Error& error) {
    error.hint(revision_hint(name));
    throw;
  }
}

std::string newer_words(const std::string& name) {
  if (!is_newer_release(name)) return "";
  return fmt::format(
      "{} is newer than {}, the newest known release, whose rules are taken: the engine's "
      "first start proves them",
      name, newest_release(engine_of_revision(name)).name);
}

void require_moe_backend(const RuleSet& rules, const std::string& text) {
  const std::string name = normalize_moe_backend(text);
  if (text.empty() || knows_moe_backend(rules, name)) return;
  for (const Release* release : all_releases()) {
    if (knows_moe_backend(rules_of(*release), name)) return;
  }
  std::vector<std::string> known{"auto"};
  for (const AliasRow& alias : rules.aliases) known.emplace_back(alias.name);
  throw Error::usage(fmt::format("--moe-backend: unknown name '{}'", text))
      .hint(nearest_hint(name, known));
}

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

std::vector<std::string> known_styles() {
  std::vector<std::string> names;
  names.reserve(kAllStyles.size());
  for (Style style : kAllStyles) names.emplace_back(style_name(style));
  return names;
}

}  // namespace mxfp4
