// list: shows the tables by which the program decides.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "apps/commands.hpp"
#include "apps/json_output.hpp"
#include "apps/known_names.hpp"
#include "apps/list_facts.hpp"
#include "apps/name_filter.hpp"
#include "apps/text_layout.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/revisions/layout_uses.hpp"
#include "lib/revisions/library_pins.hpp"
#include "lib/revisions/revisions.hpp"
#include "lib/revisions/tested_libraries.hpp"

namespace mxfp4 {
namespace {

// Width of a column of `list backends`, with the gap behind it.
constexpr size_t kFamily = 9;

// Width of the column of layouts: the longest name, and the gap behind it.
size_t layout_column() {
  size_t widest = 0;
  for (const Layout* layout : all_layouts()) widest = std::max(widest, layout->id.size());
  return widest + 1;
}

std::string condition_of(const LayoutRow& row) {
  return row.when.text.empty() ? "any" : std::string(row.when.text);
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

// The table as text: under each backend's name, which is long, one row for each layout. A refusal,
// which is a sentence, takes the place of layout and condition.
std::string backends_text(const RuleSet& rules, NameFilter& filter, const Console& console) {
  const size_t layouts = layout_column();
  const auto cells = [&](std::string_view family, std::string_view layout) {
    return fmt::format("  {:<{}}{:<{}}", family, kFamily, layout, layouts);
  };
  std::string out = console.bold(cells("family", "layout") + "when") + "\n";
  std::vector<std::string_view> others;
  for (Backend backend : all_backends()) {
    if (!filter.takes({backend_name(backend)})) continue;
    if (std::ranges::find(rules.layouts, backend, &LayoutRow::backend) == rules.layouts.end()) {
      others.push_back(backend_name(backend));
      continue;
    }
    const std::vector<std::string_view> names = asked_by(rules, backend);
    if (names.empty()) {
      out += console.bold(backend_name(backend)) + "\n";
    } else {
      append_wrapped(out, console.bold(backend_name(backend)) + "  ", 4,
                     fmt::format("--moe-backend {}", fmt::join(names, ", ")));
    }
    for (const LayoutRow& row : rules.layouts) {
      if (row.backend != backend) continue;
      const std::string_view family = row.family ? family_name(*row.family) : "both";
      const std::string_view when = condition_words(rules, row);
      if (row.layout != nullptr) {
        append_wrapped(out, cells(family, row.layout->id), 2 + kFamily + layouts,
                       when.empty() ? "always" : when);
      } else {
        const std::string words = row.when.text.empty() ? "" : fmt::format(" ({})", row.when.text);
        append_wrapped(out, fmt::format("  {:<{}}", family, kFamily), 2 + kFamily,
                       fmt::format("none{}: {}", words, row.refusal));
      }
    }
  }
  if (others.empty()) return out;
  append_wrapped(out, "", 0,
                 fmt::format("No layout in {}: {}", rules.name, fmt::join(others, ", ")));
  return out;
}

// The engines that --engine asks for; all without it.
std::vector<Engine> engines_asked(const ListOptions& options) {
  const std::optional<Engine> one = engine_from_name(options.engine);
  return one ? std::vector{*one} : std::vector{Engine::kVllm, Engine::kSglang};
}

// By its name, or by what else --revision takes for it: "0.33", "v0.33.0", "0.33.0+cu129".
bool takes_release(NameFilter& filter, const Release& release) {
  const bool meant = find_release(filter.name()) == &release;
  return filter.takes({release.name, meant ? filter.name() : release.version});
}

// The table as text, newest first, one engine behind the other: a line for each revision, or with a
// name a block.
std::string revisions_text(const Console& console, const ListOptions& options, NameFilter& filter) {
  std::string out;
  std::vector<std::vector<std::string>> lines{{"revision", "date", "commit"}};
  for (const Engine engine : engines_asked(options)) {
    const auto& releases = releases_of(engine);
    for (auto at = releases.rbegin(); at != releases.rend(); ++at) {
      const Release& release = **at;
      if (!takes_release(filter, release)) continue;
      const std::string name = fmt::format(
          "{}{}", release.name, release.name == default_revision().name ? " (default)" : "");
      lines.push_back({name, std::string(release.date), std::string(release.commit)});
      out += fmt::format("{}{}  {}\n", out.empty() ? "" : "\n", console.bold(name), release.date);
      if (!release.commit.empty()) {
        append_wrapped(out, fmt::format("  {:<10}", engine_title(engine)), 12, release.commit);
      }
      append_wrapped(out, "  pins      ", 12, pins_text(release.pins));
      append_wrapped(out, "  changes   ", 12, release.changes);
      append_wrapped(out, "  executed  ", 12,
                     release.executed.empty() ? "nothing yet" : release.executed);
    }
  }
  return filter.name().empty() ? console.table(lines) : out;
}

std::vector<const Layout*> layouts_named(NameFilter& filter) {
  std::vector<const Layout*> found;
  for (const Layout* layout : all_layouts()) {
    if (filter.takes({layout->id})) found.push_back(layout);
  }
  return found;
}

// A line for each way in which a backend comes to the layout.
std::string uses_text(const Layout& layout) {
  std::string text;
  for (const LayoutUse& use : layout_uses(layout)) {
    text += (text.empty() ? "" : "\n") + layout_use_text(use);
  }
  return text;
}

// The table as text: a line for each layout, with the backends that take it.
std::string layout_lines(const Console& console, const std::vector<const Layout*>& layouts) {
  std::vector<std::vector<std::string>> lines{{"layout", "backends"}};
  for (const Layout* layout : layouts) {
    std::set<std::string_view> backends;
    for (const LayoutUse& use : layout_uses(*layout)) {
      for (const Backend backend : use.backends) backends.insert(backend_name(backend));
    }
    lines.push_back({std::string(layout->id), fmt::format("{}", fmt::join(backends, ", "))});
  }
  return console.table(lines);
}

// One block for each layout.
std::string layouts_text(const Console& console, const std::vector<const Layout*>& layouts) {
  std::string out;
  const auto field = [&](std::string_view name, std::string_view text) {
    if (text.empty()) return;
    out += fmt::format("  {}:\n", name);
    while (!text.empty()) {
      const size_t end = text.find('\n');
      append_wrapped(out, "    ", 6, text.substr(0, end));
      text = end == std::string_view::npos ? "" : text.substr(end + 1);
    }
  };
  for (const Layout* layout : layouts) {
    out += fmt::format("{}{}\n", out.empty() ? "" : "\n", console.bold(layout->id));
    field("backends", uses_text(*layout));
    field("outputs", layout->outputs_doc);
    field("formula", layout->formula);
    field("preconditions", layout->preconditions);
    field("kernel library", layout->kernel_library);
    for (const TestedLibrary& row : tested_libraries()) {
      if (row.layout != layout) continue;
      field("tested with", fmt::format("{} {}", row.library, fmt::join(row.versions, ", ")));
    }
    field("source", layout->source);
  }
  return out;
}

// {"flashinfer": ["0.6.18", ...]}: the kernel libraries whose code has made the layout's bytes in
// tests.
Json tested_json(const Layout* layout) {
  Json json = Json::object();
  for (const TestedLibrary& row : tested_libraries()) {
    if (row.layout == layout) json[std::string(row.library)] = row.versions;
  }
  return json;
}

Json layouts_json(const std::vector<const Layout*>& layouts) {
  Json json = Json::array();
  for (const Layout* layout : layouts) {
    json.push_back({{"id", layout->id},
                    {"backends", uses_text(*layout)},
                    {"outputs", layout->outputs_doc},
                    {"formula", layout->formula},
                    {"preconditions", layout->preconditions},
                    {"kernel_library", text_or_null(layout->kernel_library)},
                    {"tested_with", tested_json(layout)},
                    {"source", layout->source}});
  }
  return json;
}

// One object for each row of the table. Of rows with the same backend and family, the first whose
// condition holds counts.
Json backends_json(const RuleSet& rules, NameFilter& filter) {
  Json json = Json::array();
  for (Backend backend : all_backends()) {
    if (!filter.takes({backend_name(backend)})) continue;
    for (const LayoutRow& row : rules.layouts) {
      if (row.backend != backend) continue;
      json.push_back({{"backend", backend_name(backend)},
                      {"family", row.family ? family_name(*row.family) : "both"},
                      {"condition", condition_of(row)},
                      {"layout", row.layout != nullptr ? Json(row.layout->id) : Json()},
                      {"refusal", row.layout != nullptr ? Json() : Json(row.refusal)},
                      {"moe_backend", asked_by(rules, backend)}});
    }
  }
  return json;
}

Json revisions_json(const ListOptions& options, NameFilter& filter) {
  Json json = Json::array();
  for (const Engine engine : engines_asked(options)) {
    for (const Release* release : releases_of(engine)) {
      if (!takes_release(filter, *release)) continue;
      Json row = {{"revision", release->name},
                  {"engine", engine_name(engine)},
                  {"default", release->name == default_revision().name},
                  {"date", release->date}};
      if (engine == Engine::kVllm) row["vllm_commit"] = release->commit;
      row["kernel_libraries"] = pins_text(release->pins);
      row["changes"] = release->changes;
      row["executed"] = text_or_null(release->executed);
      json.push_back(std::move(row));
    }
  }
  return json;
}

// What a table is asked for. `only` is null without --revision.
struct ListQuestion {
  const ListOptions& options;
  const RuleSet& rules;
  const RuleSet* only;
  NameFilter& names;
};

struct ListTable {
  std::string_view name;
  std::string_view row;  // what one of its rows is
  bool by_release;       // takes --revision
  std::string (*text)(const Console& console, const ListQuestion& question);
  Json (*json)(const ListQuestion& question);
};

const ListTable kTables[] = {
    {"backends", "backend", true,
     [](const Console& console, const ListQuestion& q) {
       return backends_text(q.rules, q.names, console);
     },
     [](const ListQuestion& q) { return backends_json(q.rules, q.names); }},
    {"knobs", "knob", false,
     [](const Console& console, const ListQuestion& q) { return knobs_text(console, q.names); },
     [](const ListQuestion& q) { return knobs_json(q.names); }},
    {"layouts", "layout", false,
     [](const Console& console, const ListQuestion& q) {
       const auto layouts = layouts_named(q.names);
       return q.names.name().empty() ? layout_lines(console, layouts)
                                     : layouts_text(console, layouts);
     },
     [](const ListQuestion& q) { return layouts_json(layouts_named(q.names)); }},
    {"libraries", "library", true,
     [](const Console& console, const ListQuestion& q) {
       return libraries_text(console, q.names, q.only);
     },
     [](const ListQuestion& q) { return libraries_json(q.names, q.only); }},
    {"machines", "machine", false,
     [](const Console& console, const ListQuestion& q) { return machines_text(console, q.names); },
     [](const ListQuestion& q) { return machines_json(q.names); }},
    {"revisions", "revision", false,
     [](const Console& console, const ListQuestion& q) {
       return revisions_text(console, q.options, q.names);
     },
     [](const ListQuestion& q) { return revisions_json(q.options, q.names); }},
    {"styles", "style", false,
     [](const Console& console, const ListQuestion& q) { return styles_text(console, q.names); },
     [](const ListQuestion& q) { return styles_json(q.names); }},
    {"variables", "variable", true,
     [](const Console& console, const ListQuestion& q) {
       return variables_text(console, q.names, q.only);
     },
     [](const ListQuestion& q) { return variables_json(q.names, q.only); }},
};

}  // namespace

std::vector<std::string> list_tables() {
  std::vector<std::string> names;
  for (const ListTable& row : kTables) names.emplace_back(row.name);
  return names;
}

int run_list(const ListOptions& options, const Console& console) {
  const auto* asked = std::ranges::find(kTables, std::string_view(options.what), &ListTable::name);
  if (!options.engine.empty() && !asked->by_release && options.what != "revisions") {
    throw Error::usage(fmt::format("--engine: has no effect with list {}", options.what));
  }
  if (!options.revision.empty() && !asked->by_release) {
    throw Error::usage(fmt::format("--revision: has no effect with list {}", options.what));
  }
  // Ask: find the rules, which only some tables depend on.
  const bool usual =
      options.revision.empty() && engine_fits(options.engine, options.revision_default);
  const RuleSet& rules = rules_named(
      revision_of_engine(options.engine, usual ? options.revision_default : options.revision));
  const bool any = options.revision.empty() && options.engine.empty();
  NameFilter names(options.name);
  const ListQuestion question{options, rules, any ? nullptr : &rules, names};

  const std::string where = any                 ? ""
                            : asked->by_release ? fmt::format(" in {}", rules.name)
                                                : fmt::format(" of {}", options.engine);

  // Show: as text that fits the terminal, or as one JSON document.
  if (!console.json()) {
    const std::string text = asked->text(console, question);
    names.require_taken(asked->row, where, options.what);
    console.result(text);
    return kOk;
  }
  Json json = json_document("list");
  if (options.what == "backends") json["revision"] = rules.name;
  json[options.what] = asked->json(question);
  names.require_taken(asked->row, where, options.what);
  console.result_json(std::move(json));
  return kOk;
}

}  // namespace mxfp4
