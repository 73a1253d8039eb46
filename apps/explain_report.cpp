#include "apps/explain_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "apps/console.hpp"
#include "lib/core/visible.hpp"
#include "lib/layouts/layout.hpp"

namespace mxfp4 {
namespace {

constexpr size_t kWidest = 100;    // longer lines are hard to read
constexpr size_t kNarrowest = 20;  // of the text behind an indent

// Columns that UTF-8 text takes: its code points, but for the console's marks.
size_t columns(std::string_view text) {
  size_t count = 0;
  bool mark = false;
  for (char c : text) {
    if (c == '\033') mark = true;
    if (!mark && (static_cast<unsigned char>(c) & 0xC0U) != 0x80U) ++count;
    if (c == 'm') mark = false;
  }
  return count;
}

std::string size_text(std::string_view name, int64_t before, int64_t after) {
  return before == after ? fmt::format("{} {}", name, before)
                         : fmt::format("{} {} -> {}", name, before, after);
}

std::string multiple_text(std::string_view name, int64_t multiple) {
  return multiple == 1 ? fmt::format("{} unchanged", name)
                       : fmt::format("{} up to a multiple of {}", name, multiple);
}

}  // namespace

void append_wrapped(std::string& out, std::string first, size_t indent, std::string_view text) {
  const std::string shown = visible(text);
  text = shown;
  const size_t width = std::max(std::min(output_width(), kWidest), indent + kNarrowest);
  std::string line = std::move(first);
  bool fresh = true;  // nothing after the indent yet
  const auto next_line = [&] {
    out += line;
    out += '\n';
    line.assign(indent, ' ');
    fresh = true;
  };
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!fresh && columns(line) + 1 + columns(word) > width) next_line();
    if (!fresh) line += ' ';
    while (columns(line) + columns(word) > width) {
      const size_t room = width - columns(line);
      const size_t comma = word.substr(0, room).rfind(',');
      const size_t cut = comma == std::string_view::npos || comma == 0 ? room : comma + 1;
      line += word.substr(0, cut);
      word.remove_prefix(cut);
      next_line();
    }
    line += word;
    fresh = false;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out += line;
  out += '\n';
}

// The first rank's share of the model before rounding: no other rank has more experts.
LayerDims share_of(const Explanation& e) {
  const RankSlice& rank = e.ranks.front();
  return {static_cast<int64_t>(rank.experts.size()), e.model.hidden_size,
          e.model.intermediate_size / rank.tp_size};
}

std::string sizes_text(const Explanation& e) {
  if (e.ranks.empty()) {
    return fmt::format("{}, {}", multiple_text("H", e.multiples.hidden_size),
                       multiple_text("I", e.multiples.intermediate_size));
  }
  const LayerDims rank = share_of(e);
  const LayerDims& padded = e.ranks.front().padded;
  return fmt::format("E {}, {}, {} (on each rank)", rank.num_experts,
                     size_text("H", rank.hidden_size, padded.hidden_size),
                     size_text("I", rank.intermediate_size, padded.intermediate_size));
}

std::string settings_text(const KernelSettings& s) {
  std::string text = fmt::format("{}, activations {}", s.constructor,
                                 s.activation_dtype.empty() ? "bf16" : s.activation_dtype);
  if (s.activation_shape) text += fmt::format(" {}", *s.activation_shape);
  if (s.takes_input_scales) text += ", input scales";
  if (s.mx_alignment != 0) text += fmt::format(", mx_alignment {}", s.mx_alignment);
  if (!s.scale_swizzled) text += ", scales not swizzled";
  if (s.alpha) text += fmt::format(", alpha {}", *s.alpha);
  if (s.beta) text += fmt::format(", beta {}", *s.beta);
  if (s.clamp_limit) text += fmt::format(", clamp {}", *s.clamp_limit);
  return text;
}

std::string layout_text(const LayoutRow* row) {
  if (row == nullptr) return "none known";
  if (row->layout == nullptr) return fmt::format("none: {}", row->refusal);
  return std::string(row->layout->id);
}

std::string answer_text(const RuleSet& rules, const Explanation& e) {
  const Deployment& d = e.deployment;
  const std::string_view machine =
      d.arch.empty() ? platform_name(d.platform) : std::string_view(d.arch);
  if (!e.decision.backend) {
    return fmt::format("Refused: no backend serves this deployment on {} ({})", machine,
                       rules.name);
  }
  const std::string_view backend = backend_name(*e.decision.backend);
  if (e.refusal) {
    return fmt::format("Refused: nothing can be converted for {} on {} ({})", backend, machine,
                       rules.name);
  }
  return fmt::format("{}{}, layout {}: {}, {}", backend, e.decision.forced ? " (forced)" : "",
                     e.layout->id, machine, rules.name);
}

}  // namespace mxfp4
