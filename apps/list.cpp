// list: shows the tables by which the program decides.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "apps/commands.hpp"
#include "apps/json_output.hpp"
#include "apps/known_names.hpp"
#include "apps/text_layout.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/load/expert_layer.hpp"
#include "lib/oracle/machines.hpp"
#include "lib/revisions/library_pins.hpp"
#include "lib/revisions/revisions.hpp"
#include "lib/revisions/tested_libraries.hpp"

namespace mxfp4 {
namespace {

using Rows = std::vector<std::vector<std::string>>;

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

// The table as text: under each backend's name, which is long, one row for each layout. A refusal,
// which is a sentence, takes the place of layout and condition.
std::string backends_text(const RuleSet& rules, const Console& console) {
  const size_t layouts = layout_column();
  const auto cells = [&](std::string_view family, std::string_view layout) {
    return fmt::format("  {:<{}}{:<{}}", family, kFamily, layout, layouts);
  };
  std::string out = console.bold(cells("family", "layout") + "when") + "\n";
  std::vector<std::string_view> others;
  for (Backend backend : all_backends()) {
    if (std::ranges::find(rules.layouts, backend, &LayoutRow::backend) == rules.layouts.end()) {
      others.push_back(backend_name(backend));
      continue;
    }
    out += console.bold(backend_name(backend)) + "\n";
    std::vector<std::optional<Family>> seen;  // families of earlier rows, which have precedence
    for (const LayoutRow& row : rules.layouts) {
      if (row.backend != backend) continue;
      const std::string_view family = row.family ? family_name(*row.family) : "both";
      const bool first = std::ranges::find(seen, row.family) == seen.end();
      seen.push_back(row.family);
      if (row.layout != nullptr) {
        append_wrapped(out, cells(family, row.layout->id), 2 + kFamily + layouts,
                       !row.when.text.empty() ? row.when.text
                       : first                ? "always"
                                              : "otherwise");
      } else {
        const std::string when = row.when.text.empty() ? "" : fmt::format(" ({})", row.when.text);
        append_wrapped(out, fmt::format("  {:<{}}", family, kFamily), 2 + kFamily,
                       fmt::format("none{}: {}", when, row.refusal));
      }
    }
  }
  if (others.empty()) return out;
  append_wrapped(out, "", 0,
                 fmt::format("No layout in {}: {}", rules.name, fmt::join(others, ", ")));
  return out;
}

// The table as text: one block for each revision, newest first.
std::string revisions_text(const Console& console) {
  std::string out;
  const auto& releases = all_releases();
  for (auto at = releases.rbegin(); at != releases.rend(); ++at) {
    const Release& release = **at;
    const std::string name = fmt::format(
        "{}{}", release.name, release.name == default_revision().name ? " (default)" : "");
    out += fmt::format("{}{}  {}\n", out.empty() ? "" : "\n", console.bold(name), release.date);
    append_wrapped(out, "  vLLM      ", 12, release.commit);
    append_wrapped(out, "  pins      ", 12, pins_text(release.pins));
    append_wrapped(out, "  changes   ", 12, release.changes);
    append_wrapped(out, "  executed  ", 12,
                   release.executed.empty() ? "nothing yet" : release.executed);
  }
  return out;
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

Rows style_rows() {
  Rows rows{{"style", "what it is"}};
  for (Style style : kAllStyles) {
    rows.push_back({std::string(style_name(style)), std::string(style_text(style))});
  }
  return rows;
}

Rows machine_rows() {
  Rows rows{{"arch", "platform", "names"}};
  for (const Machine& machine : machines()) {
    rows.push_back({std::string(machine.arch), std::string(platform_name(machine.platform)),
                    fmt::format("{}", fmt::join(machine.names, ", "))});
  }
  return rows;
}

// The table as text: one block for each layout.
std::string layouts_text(const Console& console) {
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
  for (const Layout* layout : all_layouts()) {
    out += fmt::format("{}{}\n", out.empty() ? "" : "\n", console.bold(layout->id));
    field("backends", layout->backends);
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

Json layouts_json() {
  Json json = Json::array();
  for (const Layout* layout : all_layouts()) {
    json.push_back({{"id", layout->id},
                    {"backends", layout->backends},
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
Json backends_json(const RuleSet& rules) {
  Json json = Json::array();
  for (Backend backend : all_backends()) {
    for (const LayoutRow& row : rules.layouts) {
      if (row.backend != backend) continue;
      json.push_back({{"backend", backend_name(backend)},
                      {"family", row.family ? family_name(*row.family) : "both"},
                      {"condition", condition_of(row)},
                      {"layout", row.layout != nullptr ? Json(row.layout->id) : Json()},
                      {"refusal", row.layout != nullptr ? Json() : Json(row.refusal)}});
    }
  }
  return json;
}

Json revisions_json() {
  Json json = Json::array();
  for (const Release* release : all_releases()) {
    json.push_back({{"revision", release->name},
                    {"default", release->name == default_revision().name},
                    {"date", release->date},
                    {"vllm_commit", release->commit},
                    {"kernel_libraries", pins_text(release->pins)},
                    {"changes", release->changes},
                    {"executed", text_or_null(release->executed)}});
  }
  return json;
}

Json styles_json() {
  Json json = Json::array();
  for (Style style : kAllStyles) {
    json.push_back({{"style", style_name(style)}, {"tensor_names", style_text(style)}});
  }
  return json;
}

Json machines_json() {
  Json json = Json::array();
  for (const Machine& machine : machines()) {
    json.push_back({{"arch", machine.arch},
                    {"platform", platform_name(machine.platform)},
                    {"names", machine.names}});
  }
  return json;
}

Json table_json(const ListOptions& options, const RuleSet& rules) {
  if (options.what == "layouts") return layouts_json();
  if (options.what == "backends") return backends_json(rules);
  if (options.what == "machines") return machines_json();
  return options.what == "revisions" ? revisions_json() : styles_json();
}

std::string table_text(const ListOptions& options, const RuleSet& rules, const Console& console) {
  if (options.what == "layouts") return layouts_text(console);
  if (options.what == "backends") return backends_text(rules, console);
  if (options.what == "machines") return table(console, machine_rows());
  return options.what == "revisions" ? revisions_text(console) : table(console, style_rows());
}

}  // namespace

int run_list(const ListOptions& options, const Console& console) {
  if (!options.revision.empty() && options.what != "backends") {
    throw Error::usage(fmt::format("--revision: of no use with list {}", options.what));
  }
  // Ask: find the rules, which only some tables depend on.
  const RuleSet& rules = rules_named(options.revision);

  // Show: as text that fits the terminal, or as one JSON document.
  if (!console.json()) {
    console.result(table_text(options, rules, console));
    return kOk;
  }
  Json json = json_document("list");
  if (options.what == "backends") json["revision"] = rules.name;
  json[options.what] = table_json(options, rules);
  console.result_json(std::move(json));
  return kOk;
}

}  // namespace mxfp4
