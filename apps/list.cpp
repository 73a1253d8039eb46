// list: shows the tables by which the program decides, a line for each row, or with a name all of one row.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>

#include "apps/commands.hpp"
#include "apps/json_output.hpp"
#include "apps/request.hpp"
#include "apps/screen.hpp"
#include "formats/decision/request_json.hpp"
#include "lib/core/error.hpp"
#include "lib/core/suggest.hpp"
#include "lib/layouts/all_layouts.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/output.hpp"
#include "lib/load/expert_layer.hpp"
#include "lib/oracle/machines.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/fact_uses.hpp"
#include "lib/revisions/revisions.hpp"
#include "lib/revisions/tested_libraries.hpp"

namespace mxfp4 {
namespace {

struct ListQuestion {
  const ListOptions& options;
  const RuleSet& rules;
  const RuleSet* only;  // null without --revision and --engine: any release's rules count
};

struct ListRow {
  Json members;                      // the first is the row's name
  std::vector<std::string> names{};  // what it may be called, too
};
using ListRows = std::vector<ListRow>;

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

// A style, and its tensors' names.
constexpr std::pair<Style, std::string_view> kTensorNames[] = {
    {Style::kGptOss,
     "hub form: model.layers.N.mlp.experts.gate_up_proj_blocks, ..._scales, ..._bias"},
    {Style::kGptOssOriginal, "original form: block.N.mlp.mlp1_weight.blocks, ..."},
    {Style::kDeepseekV4, "layers.N.ffn.experts.K.w1.weight and .scale, also mtp.N"},
    {Style::kQuark,
     "...experts.K.gate_proj.weight and .weight_scale; gpt-oss per expert or stacked"},
    {Style::kCompressedTensors, "...experts.K.gate_proj.weight_packed and .weight_scale"},
    {Style::kMxfp4, "generic: ...experts.K.gate_proj.weight and .weight_scale"},
    {Style::kLoaded, "already stacked as the engine names them: PREFIX.w13_weight, ..."},
};
static_assert(std::size(kTensorNames) == kAllStyles.size());

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
    rows.push_back({{{"library", name},
                     {"version", pin == nullptr ? Json() : Json(pin->version)},
                     {"stock_on", stock_on(*fact.newest, name)},
                     {"decides", fact.decides},
                     {"revisions", fact.revisions}}});
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
  for (const auto& [style, names] : kTensorNames) {
    rows.push_back({{{"style", style_name(style)}, {"tensor_names", names}}});
  }
  return rows;
}

// The engine's --moe-backend names that may give the backend.
std::vector<std::string_view> asked_by(const RuleSet& rules, Backend backend) {
  std::vector<std::string_view> names;
  for (const AliasRow& row : rules.aliases) {
    const bool narrowed = std::ranges::find(row.narrowed, backend) != row.narrowed.end();
    if (narrowed || std::ranges::find(row.candidates, backend) != row.candidates.end()) {
      names.push_back(row.name);
    }
  }
  return names;
}

// The condition of a layout's row in words. "otherwise": none of the backend's earlier rows holds.
// "chosen by the model": the model's own code takes the kernel for a value of --moe-backend, without
// the oracle.
std::string_view condition_words(const RuleSet& rules, const LayoutRow& row) {
  if (!row.when.text.empty()) return row.when.text;
  for (const LayoutRow& earlier : rules.layouts) {
    if (&earlier == &row) break;
    if (earlier.backend == row.backend && earlier.family == row.family) return "otherwise";
  }
  return find_model_backend(rules, row.backend) == nullptr ? "any" : "chosen by the model";
}

// Of rows with the same backend and family, the first whose condition holds counts. A backend that the rules
// have no row for gets one that says so.
ListRows backend_rows(const ListQuestion& question) {
  const RuleSet& rules = question.rules;
  ListRows rows;
  for (const Backend backend : all_backends()) {
    const auto add = [&](std::string_view family, std::string_view condition, const Layout* layout,
                         std::string_view refusal) {
      rows.push_back({{{"backend", backend_name(backend)},
                       {"family", family},
                       {"condition", condition},
                       {"layout", layout == nullptr ? Json() : Json(layout->id)},
                       {"refusal", layout == nullptr ? Json(refusal) : Json()},
                       {"moe_backend", asked_by(rules, backend)}}});
    };
    if (std::ranges::find(rules.layouts, backend, &LayoutRow::backend) == rules.layouts.end()) {
      add("both", "any", nullptr, fmt::format("no layout in {}", rules.name));
    }
    for (const LayoutRow& row : rules.layouts) {
      if (row.backend != backend) continue;
      add(row.family ? family_name(*row.family) : "both", condition_words(rules, row), row.layout,
          row.refusal);
    }
  }
  return rows;
}

ListRows layout_rows(const ListQuestion&) {
  ListRows rows;
  for (const Layout* layout : all_layouts()) {
    std::set<std::string_view> backends;
    for (const Release* release : all_releases()) {
      for (const LayoutRow& row : rules_of(*release).layouts) {
        if (row.layout == layout) backends.insert(backend_name(row.backend));
      }
    }
    Json tested = Json::object();
    for (const TestedLibrary& row : tested_libraries()) {
      if (row.layout == layout) tested[std::string(row.library)] = row.versions;
    }
    rows.push_back({{{"id", layout->id},
                     {"backends", backends},
                     {"outputs", layout->outputs_doc},
                     {"formula", layout->formula},
                     {"preconditions", layout->preconditions},
                     {"kernel_library", text_or_null(layout->kernel_library)},
                     {"tested_with", std::move(tested)},
                     {"source", layout->source}}});
  }
  return rows;
}

// Oldest first, one engine behind the other. A row has the name, too, by which --revision would find it:
// "0.33", "v0.33.0+cu129".
ListRows revision_rows(const ListQuestion& question) {
  const Release* meant = find_release(question.options.name);
  ListRows rows;
  for (const Engine engine : {Engine::kVllm, Engine::kSglang}) {
    if (engine_from_name(question.options.engine).value_or(engine) != engine) continue;
    for (const Release* release : releases_of(engine)) {
      rows.push_back({{{"revision", release->name},
                       {"engine", engine_name(engine)},
                       {"default", release->name == default_revision().name},
                       {"date", release->date},
                       {"vllm_commit", text_or_null(release->commit)},
                       {"kernel_libraries", pins_text(release->pins)},
                       {"changes", release->changes}},
                      {std::string(release->version())}});
      if (meant == release) rows.back().names.push_back(question.options.name);
    }
  }
  return rows;
}

struct ListTable {
  std::string_view name;
  std::string_view row;           // what one of its rows is
  bool by_release;                // takes --revision
  std::vector<std::string> line;  // the members that a line shows
  ListRows (*rows)(const ListQuestion& question);
  std::vector<std::string> full =
      {};  // the same with a name; empty: all of them, one below the other
};

const ListTable kTables[] = {
    {"backends",
     "backend",
     true,
     {"backend", "moe_backend"},
     backend_rows,
     {"backend", "family", "layout", "condition", "refusal"}},
    {"knobs", "knob", false, {"knob", "values"}, knob_rows},
    {"layouts", "layout", false, {"id", "backends"}, layout_rows},
    {"libraries", "library", true, {"library", "version", "stock_on"}, library_rows},
    {"machines", "machine", false, {"arch", "platform", "names"}, machine_rows},
    {"revisions", "revision", false, {"revision", "date", "vllm_commit", "default"}, revision_rows},
    {"styles", "style", false, {"style", "tensor_names"}, style_rows},
    {"variables", "variable", true, {"variable", "decides"}, variable_rows},
};

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// The rows that `name` means, all without one: it is one of a row's names, or a family of layouts
// ("flashinfer" of "flashinfer/trtllm"). Throws Error::usage with the nearest name if there is none.
Json chosen_rows(const ListTable& table, const ListQuestion& question, std::string_view where) {
  const std::string& name = question.options.name;
  const std::string folder = name.ends_with('/') ? name : name + "/";
  Json chosen = Json::array();
  std::vector<std::string> known;
  for (ListRow& row : table.rows(question)) {
    row.names.push_back(row.members.front());
    const bool takes = name.empty() || std::ranges::any_of(row.names, [&](const std::string& one) {
                         return same_word(one, name) || one.starts_with(folder);
                       });
    known.insert(known.end(), row.names.begin(), row.names.end());
    if (takes) chosen.push_back(std::move(row.members));
  }
  if (!chosen.empty() || name.empty()) return chosen;
  throw Error::usage(fmt::format("unknown {} '{}'{}", table.row, name, where))
      .hint(nearest_hint(name, known, fmt::format("list {} shows the names", table.name)));
}

std::string rows_text(const ListTable& table, const Json& rows, bool full, const Console& console) {
  if (!full) return table_text(console, rows, table.line);
  if (!table.full.empty()) return table_text(console, rows, table.full);
  std::string out;
  for (const Json& row : rows) out += (out.empty() ? "" : "\n") + fields_text(console, row);
  return out;
}

}  // namespace

std::vector<std::string> list_tables() {
  std::vector<std::string> names;
  for (const ListTable& row : kTables) names.emplace_back(row.name);
  return names;
}

int run_list(const ListOptions& options, const Console& console) {
  const auto* table = std::ranges::find(kTables, std::string_view(options.what), &ListTable::name);
  if (!options.engine.empty() && !table->by_release && options.what != "revisions") {
    throw Error::usage(fmt::format("--engine: has no effect with list {}", options.what));
  }
  if (!options.revision.empty() && !table->by_release) {
    throw Error::usage(fmt::format("--revision: has no effect with list {}", options.what));
  }
  const RuleSet& rules = rules_named(options.engine, options.revision, console);
  const bool any = options.revision.empty() && options.engine.empty();
  const std::string where = any                 ? ""
                            : table->by_release ? fmt::format(" in {}", rules.name)
                                                : fmt::format(" of {}", options.engine);
  const Json rows = chosen_rows(*table, {options, rules, any ? nullptr : &rules}, where);
  if (!console.json()) {
    console.result(rows_text(*table, rows, !options.name.empty(), console));
    return kOk;
  }
  Json json = json_document("list");
  if (options.what == "backends") json["revision"] = rules.name;
  json[options.what] = rows;
  console.result_json(std::move(json));
  return kOk;
}

}  // namespace mxfp4
