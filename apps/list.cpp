// list: the tables that the program decides by.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "apps/commands.hpp"
#include "apps/explain_report.hpp"
#include "apps/known_names.hpp"
#include "lib/core/error.hpp"
#include "lib/load/expert_layer.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// Columns of `list backends`, the gap included.
constexpr size_t kFamily = 9;
constexpr size_t kLayout = 32;

std::string condition_of(const LayoutRow& row) {
  return row.when.text.empty() ? "any" : std::string(row.when.text);
}

Rows backend_rows(const RuleSet& rules) {
  Rows rows{{"backend", "family", "when", "layout"}};
  for (Backend backend : all_backends()) {
    for (const LayoutRow& row : rules.layouts) {
      if (row.backend != backend) continue;
      rows.push_back({std::string(backend_name(backend)),
                      row.family ? std::string(family_name(*row.family)) : "both",
                      condition_of(row),
                      row.layout != nullptr ? std::string(row.layout->id)
                                            : "refused: " + std::string(row.refusal)});
    }
  }
  return rows;
}

// For people: a table with one row a layout under each backend's name, as the names are long. A
// refusal, which is a sentence, takes the place of layout and condition.
std::string backends_text(const RuleSet& rules, const Console& console) {
  const auto cells = [](std::string_view family, std::string_view layout) {
    return fmt::format("  {:<{}}{:<{}}", family, kFamily, layout, kLayout);
  };
  std::string out = console.bold(cells("family", "layout") + "when") + "\n";
  for (Backend backend : all_backends()) {
    out += console.bold(backend_name(backend)) + "\n";
    std::vector<std::optional<Family>> seen;  // of the rows before, the first that fits being taken
    for (const LayoutRow& row : rules.layouts) {
      if (row.backend != backend) continue;
      const std::string_view family = row.family ? family_name(*row.family) : "both";
      const bool first = std::ranges::find(seen, row.family) == seen.end();
      seen.push_back(row.family);
      if (row.layout != nullptr) {
        append_wrapped(out, cells(family, row.layout->id), 2 + kFamily + kLayout,
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
  return out;
}

Rows revision_rows() {
  Rows rows{{"revision", "date", "vLLM", "kernel libraries", "changes", "executed"}};
  for (const Release* release : all_releases()) {
    std::string name(release->name);
    if (name == default_revision().name) name += " (default)";
    rows.push_back({name, std::string(release->date), std::string(release->commit),
                    std::string(release->pins), std::string(release->changes),
                    std::string(release->executed.empty() ? "nothing yet" : release->executed)});
  }
  return rows;
}

// For people: one block a revision, newest first.
std::string revisions_text(const Console& console) {
  std::string out;
  const Rows rows = revision_rows();
  for (auto row = rows.rbegin(); row + 1 != rows.rend(); ++row) {
    out += fmt::format("{}{}  {}\n", out.empty() ? "" : "\n", console.bold((*row)[0]), (*row)[1]);
    append_wrapped(out, "  vLLM      ", 12, (*row)[2]);
    append_wrapped(out, "  pins      ", 12, (*row)[3]);
    append_wrapped(out, "  changes   ", 12, (*row)[4]);
    append_wrapped(out, "  executed  ", 12, (*row)[5]);
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

// For people: one block a layout.
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
    field("source", layout->source);
  }
  return out;
}

std::string layouts_json() {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Layout* layout : all_layouts()) {
    json.push_back({{"id", layout->id},
                    {"backends", layout->backends},
                    {"outputs", layout->outputs_doc},
                    {"formula", layout->formula},
                    {"preconditions", layout->preconditions},
                    {"kernel_library", layout->kernel_library},
                    {"source", layout->source}});
  }
  return json.dump(2) + "\n";
}

// A table as an array of objects whose keys are the heading.
std::string rows_json(const Rows& rows) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (size_t r = 1; r < rows.size(); ++r) {
    nlohmann::ordered_json item;
    for (size_t c = 0; c < rows[r].size(); ++c) item[rows[0][c]] = rows[r][c];
    json.push_back(std::move(item));
  }
  return json.dump(2) + "\n";
}

}  // namespace

int run_list(const ListOptions& options, const Console& console) {
  if (!options.revision.empty() && options.what != "backends") {
    throw Error::usage(fmt::format("--revision: of no use with list {}", options.what));
  }
  const RuleSet& rules = rules_named(options.revision);
  if (options.what == "layouts") {
    console.result(console.json() ? layouts_json() : layouts_text(console));
    return kOk;
  }
  if (options.what == "backends") {
    console.result(console.json() ? rows_json(backend_rows(rules)) : backends_text(rules, console));
    return kOk;
  }
  if (options.what == "revisions") {
    console.result(console.json() ? rows_json(revision_rows()) : revisions_text(console));
    return kOk;
  }
  const Rows rows = style_rows();
  console.result(console.json() ? rows_json(rows) : table(console, rows));
  return kOk;
}

}  // namespace mxfp4
