#include "apps/list_facts.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "formats/decision/request_json.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/output.hpp"
#include "lib/load/expert_layer.hpp"
#include "lib/oracle/machines.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/fact_uses.hpp"
#include "lib/revisions/revisions.hpp"
#include "lib/revisions/tested_libraries.hpp"

namespace mxfp4 {
namespace {

// A name with all that any of the releases decides by it.
struct ListedFact {
  std::set<std::string> decides;
  std::vector<std::string_view> revisions{};  // oldest first
  const RuleSet* newest = nullptr;
};

std::map<std::string, ListedFact> listed(FactKind kind, const RuleSet* only) {
  std::map<std::string, ListedFact> facts;
  for (const Release* release : all_releases()) {
    if (only != nullptr && release->name != only->name) continue;
    FactUses uses = fact_uses(rules_of(*release), kind);
    for (auto& [name, decides] : uses) {
      ListedFact& fact = facts[name];
      fact.revisions.push_back(release->name);
      fact.newest = &rules_of(*release);
      fact.decides.merge(decides);
    }
  }
  return facts;
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

}  // namespace

ListRows variable_rows(const ListQuestion& question) {
  ListRows rows;
  for (const auto& [name, fact] : listed(FactKind::kVariable, question.only)) {
    rows.push_back(
        {{{"variable", name}, {"decides", fact.decides}, {"revisions", fact.revisions}}});
  }
  return rows;
}

ListRows library_rows(const ListQuestion& question) {
  ListRows rows;
  for (const auto& [name, fact] : listed(FactKind::kPackage, question.only)) {
    const LibraryPin* pin = pin_of(fact.newest->pins, name);
    Json tested = Json::object();
    for (const TestedLibrary& row : tested_with(name)) {
      tested[std::string(id_of(*row.layout))] = row.versions;
    }
    rows.push_back({{{"library", name},
                     {"version", pin == nullptr ? Json() : Json(pin->version)},
                     {"stock_on", stock_on(*fact.newest, name)},
                     {"decides", fact.decides},
                     {"revisions", fact.revisions},
                     {"tested_with", std::move(tested)}}});
  }
  return rows;
}

// The layouts' knobs, and the one of the serving world.
ListRows knob_rows(const ListQuestion&) {
  std::vector<Knob> knobs(kKnobs.begin(), kKnobs.end());
  knobs.push_back(
      {.name = kWorldKnob,
       .values = "N",
       .decides = "the size of the serving world, for an input that is one rank's already",
       .variable = ""});
  ListRows rows;
  for (const Knob& knob : knobs) {
    rows.push_back({{{"knob", knob.name},
                     {"values", knob.values},
                     {"decides", knob.decides},
                     {"variable", text_or_null(knob.variable)}}});
  }
  return rows;
}

ListRows machine_rows(const ListQuestion&) {
  ListRows rows;
  for (const Machine& machine : machines()) {
    rows.push_back({{{"arch", machine.arch},
                     {"platform", platform_name(*platform_of_arch(machine.arch))},
                     {"names", machine.names}},
                    {machine.names.begin(), machine.names.end()}});
  }
  return rows;
}

ListRows style_rows(const ListQuestion&) {
  ListRows rows;
  for (const Style style : kAllStyles) {
    rows.push_back({{{"style", style_name(style)}, {"tensor_names", style_text(style)}}});
  }
  return rows;
}

}  // namespace mxfp4
