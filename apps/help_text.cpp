#include "apps/help_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "apps/text_layout.hpp"

namespace mxfp4 {
namespace {

constexpr size_t kTextColumn = 28;
constexpr size_t kCommandColumn = 14;

// Appends a name, indented by two columns, and its text: beside it from `column` on, or below it if
// the name is too long.
void append_entry(std::string& out, const std::string& name, const std::string& text,
                  size_t column) {
  const size_t width = text_width();
  std::string line = "  " + name;
  if (line.size() + 2 > column) {
    out += line + "\n";
    line.clear();
  }
  for (const std::string& part : wrap(text, width - column)) {
    out += fmt::format("{:<{}}{}\n", line, column, part);
    line.clear();
  }
}

// "-o, --output OUT"
std::string names_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  const std::string& value = option.get_option_text();
  return fmt::format("{}{}{}", fmt::join(names, ", "), value.empty() ? "" : " ", value);
}

std::string usage(const CLI::App& app, const std::string& path) {
  if (!app.get_subcommands({}).empty()) return path + " COMMAND [FLAG...]";
  std::string text = path;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_name(true);
    text += option->get_required() ? " " + name : fmt::format(" [{}]", name);
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() || !option->get_required()) continue;
    text += fmt::format(" -{} {}", option->get_snames().front(), option->get_option_text());
  }
  return text + " [FLAG...]";
}

// The heading of an option. Arguments and required options come first, under one heading.
std::string group_of(const CLI::Option& option) {
  return option.get_positional() || option.get_required() ? "Arguments" : option.get_group();
}

// What one deployment in ten needs, or fewer.
bool is_rare(const CLI::Option& option) {
  static const std::set<std::string> kRare = {"--platform",
                                              "--backend",
                                              "--family",
                                              "--selector",
                                              "--activation",
                                              "--routing-method",
                                              "--no-lib",
                                              "--knob",
                                              "--pad",
                                              "--allow-known-defects",
                                              "--allow-unservable",
                                              "--pcp-size",
                                              "--all2all-backend",
                                              "--enable-eplb",
                                              "--num-redundant-experts",
                                              "--sequence-parallel",
                                              "--enable-lora",
                                              "--expert-placement",
                                              "--rank",
                                              "--style",
                                              "--model-config",
                                              "--layers",
                                              "--level",
                                              "--emit",
                                              "--check",
                                              "--direct",
                                              "--batch",
                                              "--progress",
                                              "--color"};
  return kRare.contains(option.get_name());
}

// Appends the flags in groups; those for help, which were declared first, at the end. Returns whether rare
// ones were left out.
bool append_options(std::string& out, const CLI::App& app, bool all) {
  std::vector<std::string> groups;
  for (const CLI::Option* option : app.get_options()) {
    const std::string group = group_of(*option);
    if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  }
  if (groups.size() > 1) std::rotate(groups.begin(), groups.begin() + 1, groups.end());
  bool left_out = false;
  for (const std::string& group : groups) {
    std::string lines;
    for (const CLI::Option* option : app.get_options()) {
      if (group_of(*option) != group) continue;
      if (!all && is_rare(*option)) {
        left_out = true;
      } else {
        append_entry(lines, names_of(*option), option->get_description(), kTextColumn);
      }
    }
    if (!lines.empty() && !group.empty()) out += fmt::format("\n{}:\n{}", group, lines);
  }
  return left_out;
}

// "mxfp4-repack convert"
std::string path_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : parent->get_name() + " " + app.get_name();
}

// What it does, how to call it, examples, and the commands if it has some.
void append_head(std::string& out, const CLI::App& app) {
  append_wrapped(out, "", 0, app.get_description());
  out += fmt::format("\nUsage: {}\n\nExamples:\n", usage(app, path_of(app)));
  const std::string examples = app.get_footer();
  for (std::string_view lines = examples; !lines.empty();) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    out += fmt::format("  {}\n", line);
  }
  const std::vector<const CLI::App*> commands = app.get_subcommands({});
  if (!commands.empty()) out += "\nCommands:\n";
  for (const CLI::App* command : commands) {
    append_entry(out, command->get_name(), command->get_description(), kCommandColumn);
  }
}

}  // namespace

std::string help_text(const CLI::App& app, bool all) {
  std::string out;
  append_head(out, app);
  const bool left_out = append_options(out, app, all);
  if (left_out) {
    out += '\n';
    append_wrapped(out, "", 0, fmt::format("Rarer flags: {} --help-all", path_of(app)));
  }
  out += app.get_parent() != nullptr
             ? "\nman mxfp4-repack explains them all.\n"
             : "\nFlags: mxfp4-repack COMMAND --help. All else: man mxfp4-repack.\n"
               "Guides: tutorial, how to, Kubernetes, Python: man/guide of the source tree, or\n"
               "/usr/share/doc/mxfp4-repack/guide.\n";
  return out;
}

}  // namespace mxfp4
