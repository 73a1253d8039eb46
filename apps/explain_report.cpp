#include "apps/explain_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/console.hpp"
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
  if (!options.input.path.empty()) append_field(out, "checkpoint", options.input.path.string());
  if (e.caller != nullptr) {
    append_field(out, e.assumed_caller ? "as if served by" : "served by",
                 fmt::format("{} ({})", e.caller->method, e.caller->text));
  }
  append_field(out, "machine", fmt::format("{} {}", platform_name(d.platform), d.arch));
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

void append_tried(std::string& out, const Decision& decision) {
  out += "\ntried\n";
  if (decision.trace.empty()) out += "  nothing: the request itself is refused\n";
  for (const TraceStep& step : decision.trace) {
    const std::string key = step.key ? fmt::format(" with {} activations", *step.key) : "";
    out += fmt::format("  {:<4}{}{}\n", step.supported ? "yes" : "no", step.candidate, key);
    if (step.supported) continue;
    append_wrapped(out, std::string(6, ' '), 8, step.reason);
    if (!step.needs.empty()) append_wrapped(out, "      needs ", 8, step.needs);
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
    out += "\nrefused\n";
    append_wrapped(out, fmt::format("  {}: ", decision.error_type), 4, decision.error_message);
    return;
  }
  out += "\nchosen\n";
  append_field(out, "backend", backend_name(*decision.backend));
  if (!decision.experts_class.empty()) append_field(out, "class", decision.experts_class);
  append_field(out, "sizes", sizes_text(e));
  append_field(out, "quant config", settings_text(*e.settings));
  append_field(out, "layout", layout_text(e.row));
  for (const std::string& note : decision.notes) append_field(out, "beware", note);
  for (const std::string& defect : e.defects) append_field(out, "beware", defect);
}

// Appends the flags as they were typed, those that `keep` holds for.
template <class Keep>
void append_flags(std::vector<std::string>& parts, const ExplainOptions& options, Keep&& keep) {
  for (const GivenFlag& flag : options.given) {
    if (flag.name == kInputName || flag.name == "--against" || !keep(flag.name)) continue;
    if (flag.values.empty()) parts.push_back(flag.name);
    for (const std::string& value : flag.values) {
      parts.push_back(fmt::format("{} {}", flag.name, shell_word(value)));
    }
  }
}

void append_next(std::string& out, const Explanation& e) {
  out += "\nnext\n";
  append_command(out, e.next);
}

nlohmann::ordered_json deployment_json(const Deployment& d) {
  return {
      {"platform", platform_name(d.platform)},
      {"arch", d.arch},
      {"libs", d.libs},
      {"env", d.env},
      {"selector", selector_name(d.selector)},
      {"moe_backend", d.moe_backend},
      {"activation_override", d.activation_override ? nlohmann::ordered_json(*d.activation_override)
                                                    : nlohmann::ordered_json()},
      {"model_activation",
       d.model_activation ? nlohmann::ordered_json(*d.model_activation) : nlohmann::ordered_json()},
      {"activation", d.activation},
      {"is_act_and_mul", d.is_act_and_mul},
      {"routing_method", d.routing_method},
      {"parallel",
       {{"tp", d.parallel.tp_size},
        {"pcp", d.parallel.pcp_size},
        {"dp", d.parallel.dp_size},
        {"enable_expert_parallel", d.parallel.enable_expert_parallel},
        {"all2all_backend", d.parallel.all2all_backend},
        {"enable_eplb", d.parallel.enable_eplb},
        {"sequence_parallel", d.parallel.sequence_parallel}}},
      {"lora", d.lora}};
}

template <class Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

nlohmann::ordered_json settings_json(const KernelSettings& s) {
  return {
      {"constructor", s.constructor},
      {"activation_dtype", s.activation_dtype.empty() ? nlohmann::ordered_json()
                                                      : nlohmann::ordered_json(s.activation_dtype)},
      {"activation_shape", or_null(s.activation_shape)},
      {"block_shape", or_null(s.block_shape)},
      {"is_scale_swizzled", s.scale_swizzled},
      {"mx_alignment", s.mx_alignment},
      {"gemm1_alpha", or_null(s.alpha)},
      {"gemm1_beta", or_null(s.beta)},
      {"gemm1_clamp_limit", or_null(s.clamp_limit)}};
}

nlohmann::ordered_json dims_json(const LayerDims& dims) {
  return {{"num_experts", dims.num_experts},
          {"hidden_size", dims.hidden_size},
          {"intermediate_size", dims.intermediate_size}};
}

// The first rank's share of the model before rounding: no other rank has more experts.
LayerDims share_of(const Explanation& e) {
  const RankSlice& rank = e.ranks.front();
  return {static_cast<int64_t>(rank.experts.size()), e.model.hidden_size,
          e.model.intermediate_size / rank.tp_size};
}

void add_choice(nlohmann::ordered_json& out, const Explanation& e) {
  const Decision& decision = e.decision;
  out["backend"] = backend_name(*decision.backend);
  out["experts_class"] = decision.experts_class.empty()
                             ? nlohmann::ordered_json()
                             : nlohmann::ordered_json(decision.experts_class);
  out["forced"] = decision.forced;
  out["family"] = family_name(e.family);
  out["round_up_to"] = {{"hidden_size", e.multiples.hidden_size},
                        {"intermediate_size", e.multiples.intermediate_size}};
  if (!e.ranks.empty()) {
    out["sizes"] = {{"rank", dims_json(share_of(e))},
                    {"padded", dims_json(e.ranks.front().padded)}};
  }
  out["quant_config"] = settings_json(*e.settings);
  const bool has_layout = e.row != nullptr && e.row->layout != nullptr;
  out["layout"] = has_layout ? nlohmann::ordered_json(e.row->layout->id) : nlohmann::ordered_json();
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

std::vector<std::string> next_command(const ExplainOptions& options, ConversionRequest request,
                                      const OpenedCheckpoint* checkpoint,
                                      const Conversion& conversion) {
  const RequestFlags& flags = options.deployment;
  const std::string input =
      options.input.path.empty() ? "CHECKPOINT" : shell_word(options.input.path.string());
  const auto works = [&] { return !decide_conversion(request, checkpoint).refusal; };
  const auto convert = [&](std::string_view without) {
    std::vector<std::string> parts{fmt::format("mxfp4-repack convert {} -o OUT", input)};
    append_flags(parts, options, [&](std::string_view name) { return name != without; });
    return parts;
  };
  if (!conversion.refusal) return convert("");
  if (!conversion.defects.empty()) {
    request.allow_known_defects = true;
    if (works()) {
      std::vector<std::string> parts = convert("");
      parts.emplace_back("--allow-known-defects");
      return parts;
    }
  }
  if (!flags.moe_backend.empty() && flags.target_file.empty()) {
    request.deployment.moe_backend.reset();
    if (works()) return convert("--moe-backend");
  }
  if (conversion.layout == nullptr || checkpoint == nullptr) return {"mxfp4-repack list backends"};
  // The sizes that stand in the way.
  std::vector<std::string> parts{"mxfp4-repack inspect " + input};
  static const std::set<std::string_view> kOfInput = {"--style", "--model-config", "--layers",
                                                      "--family"};
  append_flags(parts, options, [&](std::string_view name) { return kOfInput.contains(name); });
  return parts;
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

std::string explanation_text(const RuleSet& rules, const ExplainOptions& options,
                             const Explanation& e) {
  std::string out = fmt::format("Rules {} (vLLM {}).\n\n", rules.name, rules.commit);
  append_asked(out, rules, options, e);
  append_tried(out, e.decision);
  append_chosen(out, e);
  append_next(out, e);
  return out;
}

Json explanation_json(const RuleSet& rules, const ExplainOptions& options, const Explanation& e) {
  Json out = json_document("explain");
  out["revision"] = rules.name;
  out["checkpoint"] = text_or_null(options.input.path.string());
  if (e.caller != nullptr) out[e.assumed_caller ? "assumed_method" : "method"] = e.caller->method;
  out["deployment"] = deployment_json(e.deployment);
  if (e.decision.backend) add_choice(out, e);
  if (e.refusal) out["error"] = error_json(*e.refusal);
  auto& trace = out["trace"] = nlohmann::ordered_json::array();
  for (const TraceStep& step : e.decision.trace) {
    trace.push_back(
        {step.candidate, or_null(step.key), step.supported,
         step.supported ? nlohmann::ordered_json() : nlohmann::ordered_json(step.reason)});
  }
  std::vector<std::string> notes = e.decision.notes;
  notes.insert(notes.end(), e.defects.begin(), e.defects.end());
  out["notes"] = notes;
  return out;
}

}  // namespace mxfp4
