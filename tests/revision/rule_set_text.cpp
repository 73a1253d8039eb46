#include "tests/revision/rule_set_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "lib/layouts/output.hpp"
#include "lib/revisions/tested_libraries.hpp"

namespace mxfp4 {
namespace {

template <class... Args>
void line(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  out += fmt::format(format, std::forward<Args>(args)...) + "\n";
}

std::string names(const std::vector<Backend>& backends) {
  std::vector<std::string_view> list;
  list.reserve(backends.size());
  for (const Backend backend : backends) list.push_back(backend_name(backend));
  return fmt::format("{}", fmt::join(list, " "));
}

std::string_view or_none(std::string_view text) { return text.empty() ? "none" : text; }

std::string refusal(const Refusal& r) { return fmt::format("{}: {}", r.type, r.text); }

std::string forced(const ForcedTry& t) {
  return fmt::format("{}: try {} with key {}", t.when.text, backend_name(t.backend),
                     or_none(t.key));
}

// The rows in the order of their backends: between two backends a table's order decides nothing.
template <class Row>
std::vector<Row> by_backend(std::vector<Row> rows) {
  std::ranges::stable_sort(rows, {}, &Row::backend);
  return rows;
}

// As by_backend; of rows next to each other those of gpt_oss come first, since no target has two
// families. A row for both families keeps its place.
std::vector<LayoutRow> layout_order(const std::vector<LayoutRow>& table) {
  std::vector<LayoutRow> rows = by_backend(table);
  for (auto first = rows.begin(); first != rows.end();) {
    const auto last = std::find_if(first, rows.end(), [&](const LayoutRow& row) {
      return row.backend != first->backend || !row.family;
    });
    std::stable_sort(first, last,
                     [](const LayoutRow& a, const LayoutRow& b) { return *a.family < *b.family; });
    first = last == first ? first + 1 : last;
  }
  return rows;
}

void add_names(std::string& out, const RuleSet& rules) {
  out += "\n[keys]\n";
  for (const ActivationKeyRow& row : rules.keys) line(out, "{} = {}", row.name, row.text);
  line(out, "(weights) = {}", rules.weight_key_text);
  for (const Fp8TextRow& row : rules.fp8_texts) {
    line(out, "fp8 when {}: {}", row.when.text, row.text);
  }
  out += "\n[names]\n";
  line(out, "activations {}", fmt::join(rules.activations, " "));
  for (const NameAlias& row : rules.activation_aliases) line(out, "{} = {}", row.name, row.means);
  for (const NumberedName& row : rules.routing_methods) {
    line(out, "routing {} {}", row.number, row.name);
  }
  line(out, "all-to-all {}", fmt::join(rules.all2all_backends, " "));
  for (const NameAlias& row : rules.all2all_aliases) line(out, "{} = {}", row.name, row.means);
  line(out, "packages {}", fmt::join(rules.packages, " "));
  for (const StockRow& row : rules.stock_packages) {
    line(out, "stock {}: {}", platform_name(row.platform), fmt::join(row.packages, " "));
  }
  line(out, "option names {}", fmt::join(rules.option_names, " "));
  if (rules.simulates_beside_routing) line(out, "simulated routing keeps the model's method");
  if (rules.loader.encodes_scales) line(out, "the MXFP4 method encodes floating scales");
  if (!rules.takes_override) line(out, "no quantization_config.moe.activation");
  out += "\n[routing from model parameters]\n";
  for (const RoutingRow& row : rules.routing) line(out, "{}: {}", row.text, row.method);
}

void add_classes(std::string& out, const RuleSet& rules) {
  out += "\n[facts]\n";
  line(out, "gated: {}", rules.gated.text);
  line(out, "all-to-all in use: {}", rules.uses_all2all.text);
  line(out, "batched: {}", rules.batched.text);
  if (!rules.gemm_type.variable.empty()) {
    line(out, "gemm type: {}{}{}", rules.gemm_type.variable,
         rules.gemm_type.any_value ? ", any value" : "",
         rules.gemm_type.grouped_with_expert_parallel ? ", grouped with expert parallelism" : "");
  }
  for (const RequirementRow& row : rules.requirements) {
    line(out, "require {}, else {}", row.must_hold.text, refusal(row.refusal));
  }
  out += "\n[backends]\n";
  for (const BackendRow& row : rules.backends) {
    line(out, "{} ('{}') key {}{}{}{}", backend_name(row.backend), row.value, or_none(row.key),
         row.survives_any_key ? ", survives any key" : "", row.emulates ? ", emulates" : "",
         row.asks_compiler ? ", asks for the CUDA compiler" : "");
    for (const std::string_view name : row.classes) line(out, "  {}", name);
    for (const std::string_view name : row.lora_classes) line(out, "  named, with LoRA: {}", name);
    if (!row.lora_refusal.type.empty()) {
      line(out, "  named, with LoRA: {}", refusal(row.lora_refusal));
    }
    if (!row.required_package.empty()) {
      line(out, "  needs package {}, else {}", row.required_package, refusal(row.import_failure));
    }
  }
  std::set<std::string_view> seen;
  for (const BackendRow& row : rules.backends) {
    std::vector<std::string_view> classes = row.classes;
    classes.insert(classes.end(), row.lora_classes.begin(), row.lora_classes.end());
    for (const std::string_view name : classes) {
      const ExpertClass* c = find_class(rules, name);
      if (!seen.insert(c->name).second) continue;
      line(out, "\n[class {}]{}", c->name, c->monolithic ? " monolithic" : "");
      for (const Check& check : c->checks) {
        line(out, "{}: {}", check.topic, check.passes.text);
        line(out, "    else {}", check.reason);
      }
      if (c->suffix) line(out, "suffix when {}: {}", c->suffix->when.text, c->suffix->text);
    }
  }
}

void add_selection(std::string& out, const RuleSet& rules) {
  out += "\n[aliases]\n";
  for (const AliasRow& row : rules.aliases) {
    line(out, "{}: {}{}", row.name, names(row.candidates),
         row.keeps_order_without_key ? ", in this order without a key" : "");
    if (row.narrowed_when.holds) {
      line(out, "  {}: {}", row.narrowed_when.text, names(row.narrowed));
    }
  }
  if (rules.falls_back_without_key) line(out, "then those without a key");
  for (const ReplacementRow& row : rules.replacements) {
    line(out, "{} becomes {} when {}", backend_name(row.from), backend_name(row.to), row.when.text);
  }
  for (const SelectorRow& selector : rules.selectors) {
    line(out, "\n[selector {}] {}", selector_name(selector.selector),
         selector.uses_keys ? "uses keys" : "no keys");
    if (!selector.drops_other_keys) line(out, "all are asked, with the key or their own");
    if (selector.own_key_when_named) line(out, "named: asked with its own key");
    if (selector.own_key_in_list) line(out, "in the list: asked with its own key");
    if (selector.filters_named) line(out, "named: those without a key are preferred");
    for (const ForcedTry& gate : selector.gates) {
      line(out, "gate {}: try {} with the requested key", gate.when.text,
           backend_name(gate.backend));
    }
    for (const PriorityRow& row : selector.priorities) {
      line(out, "{}: {}", row.when.text, names(row.backends));
    }
    for (const EnvOverrideRow& row : selector.env_overrides) {
      line(out, "env {}: zero drops [{}]", row.variable, names(row.dropped_when_zero));
      for (const ForcedTry& row_try : row.tries) line(out, "  {}", forced(row_try));
      if (!row.otherwise.text.empty()) line(out, "  else {}", refusal(row.otherwise));
    }
    for (const ExhaustedRow& row : selector.exhausted) {
      const std::string what = row.last_try  ? forced(*row.last_try)
                               : row.refusal ? refusal(*row.refusal)
                                             : "the backend NONE";
      line(out, "exhausted, {}: {}", row.when.text, what);
    }
  }
  out += "\n[messages]\n";
  const Messages& m = rules.messages;
  for (const Refusal& r :
       {m.unknown_backend, m.unsupported, m.key_conflict, m.no_variant, m.no_classes}) {
    line(out, "{}", refusal(r));
  }
}

void add_checkpoints(std::string& out, const RuleSet& rules) {
  out += "\n[callers]\n";
  for (const CallerRow& row : rules.callers) {
    line(out, "{}: {}", row.text, row.method);
    line(out, "  selector {}, converter {}, key {}, capability {}", selector_name(row.selector),
         family_name(row.family), or_none(row.model_activation), row.minimum_capability);
    line(out, "  rounds {} (never for {}), first class only {}, gives layer {}", row.rounds,
         backend_name(row.never_rounds.value_or(Backend::NONE)), row.first_class_only,
         row.gives_layer);
    if (!row.input_dtype.empty()) line(out, "  activations for the converter {}", row.input_dtype);
    if (row.scale_fill) line(out, "  padding of scales {}", std::to_integer<int>(*row.scale_fill));
    if (row.replaced_when.holds) {
      line(out, "  {} when {}", backend_name(row.replacement), row.replaced_when.text);
    }
    if (!row.note.empty()) line(out, "  note: {} (fixed in {})", row.note, row.note_fixed_in);
    const auto add_direct = [&](std::string_view kind, const DirectRow& direct) {
      line(out, "  {}, {}: {} {}{}; {}", kind, direct.when.text,
           direct.backend       ? backend_name(*direct.backend)
           : direct.asks_oracle ? "asks the oracle"
                                : "no layout",
           direct.experts_class,
           direct.knob.empty() ? "" : fmt::format(", {}={}", direct.knob, direct.knob_value),
           direct.note);
      if (direct.asked_key) line(out, "    asked afterwards, key {}", or_none(*direct.asked_key));
      if (!direct.refusal.text.empty()) line(out, "    else {}", refusal(direct.refusal));
    };
    for (const DirectRow& direct : row.direct) add_direct("direct", direct);
    for (const DirectRow& exception : row.exceptions) add_direct("exception", exception);
  }
  out += "\n[models that choose by themselves]\n";
  for (const ModelBackendRow& row : rules.model_backends) {
    line(out, "{} of {} when {}: {} {}{}", row.moe_backend, fmt::join(row.model_types, "|"),
         row.when.text, backend_name(row.backend), row.experts_class,
         row.redundant_experts ? ", redundant experts" : "");
    for (const RequirementRow& requirement : row.requirements) {
      line(out, "  require {}, else {}", requirement.must_hold.text, refusal(requirement.refusal));
    }
  }
  out += "\n[fused shared experts]\n";
  for (const FusedSharedRow& row : rules.fused_shared) {
    line(out, "{} when {}{}", fmt::join(row.model_types, "|"), row.when.text,
         row.if_mxfp4 ? ", if they are MXFP4" : "");
  }
  out += "\n[converters]\n";
  for (const Family family : {Family::kGptOss, Family::kGeneric}) {
    for (const ConverterRow& row : by_backend(rules.converters)) {
      if (row.family != family) continue;
      line(out, "{} {}: {}{}{}", family_name(row.family), backend_name(row.backend),
           row.supported ? "yes" : "no", row.needs_biases ? ", needs biases" : "",
           row.needs_input_scales ? ", needs input scales" : "");
    }
  }
  for (const MethodKnobRow& row : rules.method_knobs) {
    line(out, "{} is {} unless the method says otherwise", row.knob, row.usual);
  }
  for (const InputDtypeRow& row : rules.input_dtypes) {
    line(out, "{} {}: {} is by {} alone where set{}{}", family_name(row.family),
         backend_name(row.backend), row.knob, row.variable,
         row.checkpoint ? ", the checkpoint" : "", row.override ? ", the override" : "");
    for (const KeyTypeRow& type : row.types) line(out, "  {} is {}", type.key, type.type);
    for (const TakenTypeRow& type : row.taken) {
      line(out, "  the checkpoint's {} is {} on {}, without override", type.key, type.type,
           type.text);
    }
  }
  out += "\n[load notes]\n";
  for (const LoadNoteRow& row : rules.load_notes) {
    line(out, "{} (fixed in {}){}", row.text, or_none(row.fixed_in), row.stops ? ", stops" : "");
  }
}

// ", padding of scales 127 and 0"
std::string fills(const RoundingRow& row) {
  if (!row.hidden_fill || !row.intermediate_fill) return "";
  return fmt::format(", padding of scales {} and {}", std::to_integer<int>(*row.hidden_fill),
                     std::to_integer<int>(*row.intermediate_fill));
}

void add_sizes(std::string& out, const RuleSet& rules) {
  out += "\n[sizes]\n";
  line(out, "the generic loader: ranks begin at multiples of {}, biases {}",
       rules.loader.strides_by_checkpoint ? "I / tp" : "their padded size",
       rules.loader.loads_biases ? "loaded" : "unread");
  line(out, "the gpt-oss method: biases of zeros for other models {}", rules.loader.creates_biases);
  for (const All2AllHiddenRow& row : rules.all2all_hidden) {
    line(out, "{}: H to a multiple of {} [{}]", row.all2all_backend, row.multiple,
         fmt::join(row.sizes, " "));
  }
  line(out, "else {}", refusal(rules.all2all_hidden_refusal));
  for (const RoundingRow& row : rules.rounding) {
    line(out, "{}{}: H {}, I {}{}", row.when.text.empty() ? "otherwise" : row.when.text,
         row.method.empty() ? "" : fmt::format(" ({})", row.method), row.hidden_multiple,
         row.intermediate_multiple, fills(row));
  }
  for (const ParameterNameRow& row : rules.parameter_names) {
    line(out, "{} of {}{} is {}", row.in_blob, row.method,
         row.except ? fmt::format(" (not with {})", backend_name(*row.except)) : "", row.in_engine);
  }
  for (const LeastSliceRow& row : rules.least_slices) {
    line(out, "{}{}: at least {} rows of I a rank{}", row.text,
         row.platform ? fmt::format(" on {}", platform_name(*row.platform)) : "", row.rows,
         row.with_expert_parallel ? ", with expert parallelism too" : "");
  }
}

}  // namespace

std::string rule_set_text(const RuleSet& rules) {
  std::string out;
  line(out, "{}: {} {}; {}", rules.name, engine_title(rules.engine), or_none(rules.commit),
       pins_text(rules.pins));
  add_names(out, rules);
  add_classes(out, rules);
  add_selection(out, rules);
  add_checkpoints(out, rules);
  add_sizes(out, rules);
  return out;
}

std::string layout_rows_text(const RuleSet& rules) {
  std::string out = "[layouts]\n";
  for (const LayoutRow& row : layout_order(rules.layouts)) {
    line(out, "{} {} {}: {}", backend_name(row.backend),
         row.family ? family_name(*row.family) : "any family",
         row.when.text.empty() ? "always" : row.when.text,
         row.layout != nullptr
             ? std::string(id_of(*row.layout))
             : fmt::format("refused, {}: {}", or_none(row.refusal_type), row.refusal));
  }
  out += "\n[defects]\n";
  for (const DefectRow& row : rules.defects) {
    line(out, "{} (fixed in {})", row.text, or_none(row.fixed_in));
  }
  return out;
}

namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Length of the longest common subsequence of the lines behind each pair of positions.
std::vector<std::vector<int>> common_lengths(const std::vector<std::string_view>& a,
                                             const std::vector<std::string_view>& b) {
  std::vector<std::vector<int>> length(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      length[i][j] =
          a[i] == b[j] ? length[i + 1][j + 1] + 1 : std::max(length[i + 1][j], length[i][j + 1]);
    }
  }
  return length;
}

}  // namespace

std::string changed_lines(const std::string& base, const std::string& text) {
  const auto a = lines_of(base);
  const auto b = lines_of(text);
  const auto length = common_lengths(a, b);
  std::string out;
  std::string_view section;
  std::string_view written;
  const auto put = [&](char sign, std::string_view words) {
    if (section != written) line(out, "{}", section);
    written = section;
    line(out, "{}{}", sign, words);
  };
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      if (b[j].starts_with('[')) section = b[j];
      ++i;
      ++j;
    } else if (j == b.size() || (i < a.size() && length[i + 1][j] >= length[i][j + 1])) {
      put('-', a[i++]);
    } else {
      if (b[j].starts_with('[')) section = written = b[j];
      put('+', b[j++]);
    }
  }
  return out;
}

}  // namespace mxfp4
