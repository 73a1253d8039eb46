#include "apps/explain_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "apps/change_words.hpp"
#include "apps/console.hpp"
#include "apps/told_facts.hpp"
#include "lib/core/visible.hpp"
#include "lib/layouts/layout.hpp"

namespace mxfp4 {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kLabelColumn = 18;

// Columns that UTF-8 text takes: its code points.
size_t columns(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// A command to copy: broken between its parts, with the shell's line continuation.
void append_command(std::string& out, const std::vector<std::string>& parts) {
  std::string line = " ";
  bool fresh = true;  // the line has no part yet
  for (const std::string& part : parts) {
    if (!fresh && columns(line) + 1 + columns(part) + 2 > kWidth) {
      out += line + " \\\n";
      line = "   ";
    }
    line += " " + part;
    fresh = false;
  }
  out += line + "\n";
}

void append_field(std::string& out, std::string_view label, std::string_view text) {
  append_wrapped(out, fmt::format("  {:<{}}", label, kLabelColumn - 2), kLabelColumn, text);
}

std::string packages_text(const RuleSet& rules, const Deployment& d) {
  std::string text = d.libs.empty() ? "none" : fmt::format("{}", fmt::join(d.libs, " "));
  const auto stock = std::ranges::find(rules.stock_packages, d.platform, &StockRow::platform);
  if (stock != rules.stock_packages.end() &&
      d.libs == std::set<std::string>(stock->packages.begin(), stock->packages.end())) {
    text += " (stock)";
  }
  return text;
}

std::string parallel_text(const ParallelConfig& p) {
  std::string text = fmt::format("tp {}, dp {}, pcp {}", p.tp_size, p.dp_size, p.pcp_size);
  if (p.enable_expert_parallel) text += ", expert parallel";
  if (p.enable_expert_parallel && p.dp_size > 1) text += ", all-to-all " + p.all2all_backend;
  if (p.sequence_parallel) text += ", sequence parallel";
  if (p.enable_eplb) text += ", EPLB";
  return text;
}

void append_asked(std::string& out, const RuleSet& rules, const ExplainOptions& options,
                  const Explanation& e) {
  const Deployment& d = e.deployment;
  out += "asked\n";
  append_field(out, "rules", fmt::format("{} (vLLM {})", rules.name, rules.commit));
  if (!options.input.path.empty()) append_field(out, "checkpoint", options.input.path.string());
  if (e.caller != nullptr) {
    append_field(out, e.assumed_caller ? "as if served by" : "served by",
                 fmt::format("{} ({})", e.caller->method, e.caller->text));
  }
  const std::string told = machine_as_told(options.deployment);
  append_field(out, "machine",
               fmt::format("{} {}{}", platform_name(d.platform), d.arch,
                           told.empty() ? "" : fmt::format(" ({})", told)));
  append_field(out, "packages", packages_text(rules, d));
  append_field(out, "moe_backend", d.moe_backend);
  const bool asks = e.caller == nullptr || e.caller->direct.empty();
  append_field(out, "selector",
               fmt::format("{}, {} converter", asks ? selector_name(d.selector) : "not asked",
                           family_name(e.family)));
  append_field(out, "activation", fmt::format("{}, routing {}", d.activation, d.routing_method));
  if (d.model_activation) append_field(out, "checkpoint key", *d.model_activation);
  if (d.activation_override) append_field(out, "override key", *d.activation_override);
  append_field(out, "parallel", parallel_text(d.parallel));
  if (d.lora) append_field(out, "LoRA", "enabled");
  for (const auto& [name, value] : d.env)
    append_field(out, "env", fmt::format("{}={}", name, value));
}

// "MarlinExperts (MARLIN) with mxfp8 activations"
std::string candidate_text(const Candidate& candidate) {
  std::string text = candidate.step.candidate;
  if (candidate.backend) text += fmt::format(" ({})", backend_name(*candidate.backend));
  if (candidate.step.key) text += fmt::format(" with {} activations", *candidate.step.key);
  return text;
}

void append_conditions(std::string& out, const std::vector<ConditionAnswer>& conditions) {
  std::string met;
  for (const ConditionAnswer& condition : conditions) {
    if (condition.met) {
      met += fmt::format("{}{}", met.empty() ? "" : "; ", condition.text);
      continue;
    }
    append_wrapped(out, "       unmet  ", 16, condition.text);
    append_wrapped(
        out, "         by   ", 16,
        condition.needs.empty() ? "no flag: it is the model's" : change_words(condition.needs));
  }
  if (!met.empty()) append_wrapped(out, "       met    ", 16, met);
}

void append_tried(std::string& out, const Explanation& e) {
  out += "\ntried\n";
  if (e.candidates.empty()) out += "  nothing: the request itself is refused\n";
  for (const Candidate& candidate : e.candidates) {
    append_wrapped(out, candidate.step.supported ? "  yes  " : "  no   ", 7,
                   candidate_text(candidate));
    if (!candidate.step.supported) {
      append_wrapped(out, "       why    ", 14, candidate.step.reason);
    }
    append_conditions(out, candidate.conditions);
  }
}

std::string size_text(std::string_view name, int64_t before, int64_t after) {
  return before == after ? fmt::format("{} {}", name, before)
                         : fmt::format("{} {} -> {}", name, before, after);
}

std::string multiple_text(std::string_view name, int64_t multiple) {
  return multiple == 1 ? fmt::format("{} unchanged", name)
                       : fmt::format("{} up to a multiple of {}", name, multiple);
}

void append_chosen(std::string& out, const Explanation& e) {
  const Decision& decision = e.decision;
  if (!decision.backend) {
    return;  // said at the top, and by the error
  }
  out += e.refusal ? "\nwould be chosen\n" : "\nchosen\n";
  append_field(out, "backend", backend_name(*decision.backend));
  if (!decision.experts_class.empty()) append_field(out, "class", decision.experts_class);
  append_field(out, "sizes", sizes_text(e));
  append_field(out, "quant config", settings_text(*e.settings));
  append_field(out, "layout", layout_text(e.row));
  for (const std::string& note : decision.notes) append_field(out, "beware", note);
  for (const std::string& defect : e.defects) {
    if (!e.refusal || e.refusal->message() != defect) append_field(out, "beware", defect);
  }
}

void append_alternative(std::string& out, const Explanation& e, const Alternative& other) {
  const bool chosen = !e.decision.forced && e.decision.backend == other.backend && !e.refusal;
  out += fmt::format("  {}{}\n", backend_name(other.backend), chosen ? "  (chosen)" : "");
  if (!other.conversion) {
    append_field(out, "  needs", "no change known: the model or the engine itself rules it out");
    return;
  }
  if (!other.needs.empty()) append_field(out, "  needs", change_words(other.needs));
  if (!other.how.empty()) append_field(out, "  ask for it", change_words(other.how));
  if (chosen) append_field(out, "  ask for it", "as asked");
  append_field(out, "  layout", layout_text(other.conversion->row));
  Explanation there{*other.conversion};
  there.multiples = rounding_multiples(*there.rules, there.caller, there.target);
  append_field(out, "  sizes", sizes_text(there));
  if (other.blob_bytes > 0) {
    append_field(out, "  blob", human_bytes(other.blob_bytes) + " before compression");
  }
}

void append_alternatives(std::string& out, const Explanation& e) {
  if (e.alternatives.empty()) return;
  const auto usable = std::ranges::count_if(e.alternatives, &Alternative::usable);
  out += usable > 0 ? "\nthis deployment can use\n" : "\nthis deployment can use no backend\n";
  for (const Alternative& other : e.alternatives) {
    if (other.usable()) append_alternative(out, e, other);
  }
  if (usable == std::ssize(e.alternatives)) return;
  out += "\nanother deployment could use\n";
  for (const Alternative& other : e.alternatives) {
    if (!other.usable()) append_alternative(out, e, other);
  }
}

void append_next(std::string& out, const Explanation& e) {
  out += "\nnext\n";
  append_command(out, e.next);
}

}  // namespace

void append_wrapped(std::string& out, std::string first, size_t indent, std::string_view text) {
  const std::string shown = visible(text);
  text = shown;
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
    if (!fresh && columns(line) + 1 + columns(word) > kWidth) next_line();
    if (!fresh) line += ' ';
    while (columns(line) + columns(word) > kWidth) {
      const size_t room = kWidth - columns(line);
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
    return fmt::format("Refused: {} on {}, which cannot be converted for ({})", backend, machine,
                       rules.name);
  }
  return fmt::format("{}{}, layout {}: {}, {}", backend, e.decision.forced ? " (forced)" : "",
                     e.layout->id, machine, rules.name);
}

std::string explanation_text(const RuleSet& rules, const ExplainOptions& options,
                             const Explanation& e) {
  std::string out;
  append_wrapped(out, "", 0, answer_text(rules, e));
  out += "\n";
  append_asked(out, rules, options, e);
  append_tried(out, e);
  append_chosen(out, e);
  append_alternatives(out, e);
  append_next(out, e);
  return out;
}

}  // namespace mxfp4
