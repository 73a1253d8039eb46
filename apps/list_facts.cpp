#include "apps/list_facts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "apps/options.hpp"
#include "apps/text_layout.hpp"
#include "lib/layouts/knob_table.hpp"
#include "lib/layouts/output.hpp"
#include "lib/load/expert_layer.hpp"
#include "lib/oracle/machines.hpp"
#include "lib/revisions/fact_uses.hpp"
#include "lib/revisions/revisions.hpp"
#include "lib/revisions/tested_libraries.hpp"

namespace mxfp4 {
namespace {

using UsesOf = FactUses (*)(const RuleSet& rules);

// A name with all that any of the releases decides by it.
struct ListedFact {
  Decides decides;
  std::vector<const Release*> releases;  // oldest first
};

std::map<std::string, ListedFact> listed(UsesOf uses_of, NameFilter& names, const RuleSet* only) {
  std::map<std::string, ListedFact> facts;
  for (const Release* release : all_releases()) {
    if (only != nullptr && release->name != only->name) continue;
    for (const auto& [name, decides] : uses_of(rules_of(*release))) {
      ListedFact& fact = facts[name];
      fact.releases.push_back(release);
      for (const auto& [what, about] : decides)
        fact.decides[what].insert(about.begin(), about.end());
    }
  }
  std::erase_if(facts, [&](const auto& fact) { return !names.takes({fact.first}); });
  return facts;
}

// "the layout of MARLIN"
std::vector<std::string> decides_words(const Decides& decides) {
  std::vector<std::string> words;
  for (const auto& [what, about] : decides) {
    words.push_back(about.empty() ? what : fmt::format("{}: {}", what, fmt::join(about, ", ")));
  }
  return words;
}

std::string_view number_of(const Release& release) {
  return release.version.empty() ? release.name : release.version;
}

// "all", "0.21.0 to 0.26.0, 0.33.0": the engine's releases that are among these; empty: none.
std::string releases_words(Engine engine, const std::vector<const Release*>& releases) {
  const auto all = releases_of(engine);
  const auto has = [&](size_t i) { return std::ranges::find(releases, all[i]) != releases.end(); };
  std::vector<std::string> runs;
  for (size_t at = 0; at < all.size();) {
    if (!has(at)) {
      ++at;
      continue;
    }
    size_t last = at;
    while (last + 1 < all.size() && has(last + 1)) ++last;
    if (at == 0 && last + 1 == all.size()) return "all";
    runs.push_back(last == at
                       ? std::string(number_of(*all[at]))
                       : fmt::format("{} to {}", number_of(*all[at]), number_of(*all[last])));
    at = last + 1;
  }
  return fmt::format("{}", fmt::join(runs, ", "));
}

// vLLM's releases first, then "SGLang: all".
std::string releases_words(const std::vector<const Release*>& releases) {
  std::string out = releases_words(Engine::kVllm, releases);
  const std::string others = releases_words(Engine::kSglang, releases);
  if (others.empty()) return out;
  return fmt::format("{}{}SGLang: {}", out, out.empty() ? "" : "; ", others);
}

std::vector<std::string_view> release_names(const std::vector<const Release*>& releases) {
  std::vector<std::string_view> names;
  names.reserve(releases.size());
  for (const Release* release : releases) names.push_back(release->name);
  return names;
}

// The lines that say what a name decides, and in which releases.
void append_fact(std::string& out, const ListedFact& fact) {
  std::string first = "  decides   ";
  for (const std::string& words : decides_words(fact.decides)) {
    append_wrapped(out, first, 12, words);
    first = std::string(12, ' ');
  }
  append_wrapped(out, "  releases  ", 12, releases_words(fact.releases));
}

// The platforms whose usual installation has the package.
std::vector<std::string_view> stock_on(const RuleSet& rules, std::string_view package) {
  std::vector<std::string_view> platforms;
  for (const StockRow& row : rules.stock_packages) {
    if (std::ranges::find(row.packages, package) != row.packages.end()) {
      platforms.push_back(platform_name(row.platform));
    }
  }
  return platforms;
}

constexpr const char* kWorldDecides =
    "the size of the serving world, for an input that is one rank's already";

const RuleSet& newest_of(const ListedFact& fact) { return rules_of(*fact.releases.back()); }

}  // namespace

std::string variables_text(const Console& console, NameFilter& names, const RuleSet* only) {
  std::string out;
  for (const auto& [name, fact] : listed(variable_uses, names, only)) {
    out += fmt::format("{}{}\n", out.empty() ? "" : "\n", console.bold(name));
    append_fact(out, fact);
  }
  return out;
}

Json variables_json(NameFilter& names, const RuleSet* only) {
  Json json = Json::array();
  for (const auto& [name, fact] : listed(variable_uses, names, only)) {
    json.push_back({{"variable", name},
                    {"decides", decides_words(fact.decides)},
                    {"revisions", release_names(fact.releases)}});
  }
  return json;
}

std::string libraries_text(const Console& console, NameFilter& names, const RuleSet* only) {
  std::string out;
  for (const auto& [name, fact] : listed(package_uses, names, only)) {
    out += fmt::format("{}{}\n", out.empty() ? "" : "\n", console.bold(name));
    const RuleSet& newest = newest_of(fact);
    if (const LibraryPin* pin = pin_of(newest.pins, name)) {
      append_wrapped(out, "  version   ", 12,
                     fmt::format("{} {} in {}", pin->library, pin->version, newest.name));
    }
    const auto platforms = stock_on(newest, name);
    append_wrapped(
        out, "  stock     ", 12,
        platforms.empty() ? "on no platform" : fmt::format("on {}", fmt::join(platforms, ", ")));
    append_fact(out, fact);
    for (const TestedLibrary& row : tested_with(name)) {
      append_wrapped(out, "  tested    ", 12,
                     fmt::format("{}: {}", id_of(*row.layout), fmt::join(row.versions, ", ")));
    }
  }
  return out;
}

Json libraries_json(NameFilter& names, const RuleSet* only) {
  Json json = Json::array();
  for (const auto& [name, fact] : listed(package_uses, names, only)) {
    const RuleSet& newest = newest_of(fact);
    const LibraryPin* pin = pin_of(newest.pins, name);
    Json tested = Json::array();
    for (const TestedLibrary& row : tested_with(name)) {
      tested.push_back({{"layout", id_of(*row.layout)}, {"versions", row.versions}});
    }
    json.push_back({{"library", name},
                    {"version", pin == nullptr ? Json() : Json(pin->version)},
                    {"stock_on", stock_on(newest, name)},
                    {"decides", decides_words(fact.decides)},
                    {"revisions", release_names(fact.releases)},
                    {"tested_with", std::move(tested)}});
  }
  return json;
}

namespace {

std::string_view style_text(Style style) {
  switch (style) {
    case Style::kGptOss:
      return "hub form: model.layers.N.mlp.experts.gate_up_proj_blocks, ..._scales, ..._bias";
    case Style::kGptOssOriginal:
      return "original form: block.N.mlp.mlp1_weight.blocks, ...";
    case Style::kDeepseekV4:
      return "layers.N.ffn.experts.K.w1.weight and .scale, also mtp.N";
    case Style::kQuark:
      return "...experts.K.gate_proj.weight and .weight_scale; gpt-oss per expert or stacked";
    case Style::kCompressedTensors:
      return "...experts.K.gate_proj.weight_packed and .weight_scale";
    case Style::kMxfp4:
      return "generic: ...experts.K.gate_proj.weight and .weight_scale";
    case Style::kLoaded:
      return "already stacked as the engine names them: PREFIX.w13_weight, ...";
  }
  return "";
}

std::vector<Style> styles_named(NameFilter& names) {
  std::vector<Style> styles(std::begin(kAllStyles), std::end(kAllStyles));
  std::erase_if(styles, [&](Style style) { return !names.takes({style_name(style)}); });
  return styles;
}

std::vector<Machine> machines_named(NameFilter& names) {
  std::vector<Machine> found;
  for (const Machine& machine : machines()) {
    std::vector<std::string_view> called{machine.arch};
    called.insert(called.end(), machine.names.begin(), machine.names.end());
    if (names.takes(called)) found.push_back(machine);
  }
  return found;
}

// The layouts' knobs, and the one of the serving world.
std::vector<Knob> knobs_named(NameFilter& names) {
  std::vector<Knob> knobs(kKnobs.begin(), kKnobs.end());
  knobs.push_back({.name = kWorldKnob, .values = "N", .decides = kWorldDecides, .variable = ""});
  std::erase_if(knobs, [&](const Knob& knob) { return !names.takes({knob.name}); });
  return knobs;
}

}  // namespace

std::string knobs_text(const Console& console, NameFilter& names) {
  std::string out;
  for (const Knob& knob : knobs_named(names)) {
    out += fmt::format("{}{}\n", out.empty() ? "" : "\n", console.bold(knob.name));
    std::string values(knob.values);
    std::ranges::replace(values, '|', ' ');
    append_wrapped(out, "  values    ", 12, values);
    append_wrapped(out, "  decides   ", 12, knob.decides);
    if (!knob.variable.empty()) append_wrapped(out, "  variable  ", 12, knob.variable);
  }
  return out;
}

Json knobs_json(NameFilter& names) {
  Json json = Json::array();
  for (const Knob& knob : knobs_named(names)) {
    json.push_back({{"knob", knob.name},
                    {"values", knob.values},
                    {"decides", knob.decides},
                    {"variable", text_or_null(knob.variable)}});
  }
  return json;
}

std::string machines_text(const Console& console, NameFilter& names) {
  std::vector<std::vector<std::string>> rows{{"arch", "platform", "names"}};
  for (const Machine& machine : machines_named(names)) {
    rows.push_back({std::string(machine.arch), std::string(platform_name(machine.platform)),
                    fmt::format("{}", fmt::join(machine.names, ", "))});
  }
  return console.table(rows);
}

Json machines_json(NameFilter& names) {
  Json json = Json::array();
  for (const Machine& machine : machines_named(names)) {
    json.push_back({{"arch", machine.arch},
                    {"platform", platform_name(machine.platform)},
                    {"names", machine.names}});
  }
  return json;
}

std::string styles_text(const Console& console, NameFilter& names) {
  std::vector<std::vector<std::string>> rows{{"style", "what it is"}};
  for (Style style : styles_named(names)) {
    rows.push_back({std::string(style_name(style)), std::string(style_text(style))});
  }
  return console.table(rows);
}

Json styles_json(NameFilter& names) {
  Json json = Json::array();
  for (Style style : styles_named(names)) {
    json.push_back({{"style", style_name(style)}, {"tensor_names", style_text(style)}});
  }
  return json;
}

}  // namespace mxfp4
