// What `explain` found for one release: the document, and the screen that is made of it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <set>

#include "apps/explain/explain.hpp"
#include "apps/screen.hpp"
#include "apps/text_layout.hpp"
#include "lib/core/deployment_facts.hpp"
#include "lib/core/parallel_text.hpp"
#include "lib/layouts/output.hpp"

namespace mxfp4 {
namespace {

// What only the weights could show, in one line.
constexpr std::string_view kOnlyWeights =
    "from the config only: the weights could show that layers differ from it, have biases, or hold "
    "scales that a layout cannot keep";

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json deployment_json(const Deployment& d) {
  Json out = {{"platform", platform_name(d.platform)},
              {"arch", d.arch},
              {"libs", d.libs},
              {"env", d.env},
              {"selector", selector_name(d.selector)},
              {"activation_override", or_null(d.activation_override)},
              {"model_activation", or_null(d.model_activation)},
              {"is_act_and_mul", d.is_act_and_mul}};
  for_each_fact([&](const FactRow& row, auto members) {
    const std::string key(row.batch);
    if constexpr (requires { d.*members.known; }) {
      out[key] = d.*members.known;
    } else {
      out["parallel"][key] = d.parallel.*members.known;
    }
  });
  return out;
}

Json dims_json(const LayerDims& dims) {
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

void add_choice(Json& out, const Explanation& e) {
  const Decision& decision = e.decision;
  out["backend"] = backend_name(*decision.backend);
  out["experts_class"] = text_or_null(decision.experts_class);
  out["forced"] = decision.forced;
  out["family"] = family_name(e.family);
  out["round_up_to"] = {{"hidden_size", e.multiples.hidden_size},
                        {"intermediate_size", e.multiples.intermediate_size}};
  if (!e.ranks.empty()) {
    out["sizes"] = {{"rank", dims_json(share_of(e))},
                    {"padded", dims_json(e.ranks.front().padded)}};
  }
  const bool has_layout = e.row != nullptr && e.row->layout != nullptr;
  out["layout"] = has_layout ? Json(id_of(*e.row->layout)) : Json();
}

// Null for a candidate that is supported.
Json reason_json(const TraceStep& step) { return step.supported ? Json() : Json(step.reason); }

Json candidate_json(const TraceStep& step) {
  return {{"class", step.candidate},
          {"backend", step.backend ? Json(backend_name(*step.backend)) : Json()},
          {"activation_key", or_null(step.key)},
          {"supported", step.supported},
          {"reason", reason_json(step)},
          {"needs", text_or_null(step.needs)}};
}

// The answer in one line.
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
                     id_of(*e.layout), machine, rules.name);
}

std::string size_text(std::string_view name, int64_t before, int64_t after) {
  return before == after ? fmt::format("{} {}", name, before)
                         : fmt::format("{} {} -> {}", name, before, after);
}

std::string multiple_text(std::string_view name, int64_t multiple) {
  return multiple == 1 ? fmt::format("{} unchanged", name)
                       : fmt::format("{} up to a multiple of {}", name, multiple);
}

// The facts that a person should check: assumptions, and how the flags were understood; with -v all.
Json asked_facts(const Explanation& e, const Json& document, bool all) {
  const Deployment& d = e.deployment;
  Json facts;
  if (e.caller != nullptr && e.assumed_caller) facts["as if served by"] = e.caller->text;
  facts["machine"] = fmt::format("{} {}", platform_name(d.platform), d.arch);
  facts["packages"] = d.libs.empty() ? "none" : fmt::format("{}", fmt::join(d.libs, " "));
  const std::string parallel = parallel_text(d.parallel);
  if (all || parallel != parallel_text({})) facts["parallel"] = parallel;
  if (e.imagined) facts["beware"] = kOnlyWeights;
  if (!all) return facts;
  for (const char* name : {"revision", "checkpoint", "method"}) {
    if (document.contains(name)) facts[name] = document[name];
  }
  facts.update(document["deployment"]);
  for (const char* name : {"platform", "arch", "libs"}) facts.erase(name);
  return facts;
}

Json chosen_facts(const Explanation& e, const Json& document) {
  Json facts = {{"backend", document["backend"]}, {"class", document["experts_class"]}};
  facts["sizes"] = sizes_text(e);
  // The error says why there is none.
  const bool none = e.refusal && (e.row == nullptr || e.row->layout == nullptr);
  facts["layout"] = none ? "none" : layout_text(e.row);
  for (const Json& note : document["notes"]) {
    if (!e.refusal || note != Json(e.refusal->message())) facts["beware"].push_back(note);
  }
  return facts;
}

// Each backend that was tried and not chosen, once for each reason.
std::string tried_text(const Console& console, const Explanation& e) {
  const std::string name = e.decision.backend ? "tried before it" : "tried";
  std::set<std::pair<std::string, std::string>> said;
  Json rows = Json::array();
  for (const TraceStep& step : e.decision.trace) {
    const std::string what(step.backend ? backend_name(*step.backend) : step.candidate);
    const std::string needs(step.needs.empty() ? std::string_view(step.reason) : step.needs);
    if (step.supported || !said.emplace(what, needs).second) continue;
    rows.push_back({{name, what}, {"needs", needs}});
  }
  return rows.empty() ? "" : "\n" + table_text(console, rows, {name, "needs"});
}

// Every class that was asked.
std::string classes_text(const Console& console, const Json& document) {
  std::string out = "\n" + console.bold("tried") + "\n";
  for (const Json& candidate : document["candidates"]) {
    const bool supported = candidate["supported"];
    out += fmt::format("  {}{}", supported ? console.good("yes") + "  " : console.bad("no") + "   ",
                       candidate["class"].get<std::string>());
    for (const auto& [name, words] :
         {std::pair("backend", " ({})"), {"activation_key", " with {} activations"}}) {
      if (!candidate[name].is_null()) {
        out += fmt::format(fmt::runtime(words), candidate[name].get<std::string>());
      }
    }
    const Json facts = {{"why", candidate["reason"]}, {"needs", candidate["needs"]}};
    out += "\n" + fields_text(console, facts, 7);
  }
  return out;
}

void append_next(std::string& out, const Console& console, const Explanation& e) {
  if (e.next.empty()) return;
  out += "\n" + console.bold("next") + "\n";
  // Comments, for those who paste what follows "next" into a shell.
  if (!e.serve.empty()) {
    out += "  # nothing: with the plug-in each start makes these bytes of the checkpoint\n";
    out += fmt::format("  #   {}\n", fmt::join(e.serve, " "));
    out += "  # or before the start, a blob:\n";
  }
  append_command(out, "  ", 4, e.next);
}

}  // namespace

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

std::string layout_text(const LayoutRow* row) {
  if (row == nullptr) return "none known";
  if (row->layout == nullptr) return fmt::format("none: {}", row->refusal);
  return std::string(id_of(*row->layout));
}

Json explanation_json(const RuleSet& rules, const ExplainOptions& options, const Explanation& e) {
  Json out = json_document("explain");
  out["answer"] = answer_text(rules, e);
  out["revision"] = rules.name;
  if (e.imagined) out["config_only"] = std::string(kOnlyWeights);
  out["checkpoint"] = text_or_null(options.input.path.string());
  if (e.caller != nullptr) out[e.assumed_caller ? "assumed_method" : "method"] = e.caller->method;
  out["deployment"] = deployment_json(e.deployment);
  if (e.decision.backend) add_choice(out, e);
  if (e.refusal) out["error"] = error_json(*e.refusal);
  Json& trace = out["trace"] = Json::array();
  for (const TraceStep& step : e.decision.trace) {
    trace.push_back({step.candidate, or_null(step.key), step.supported, reason_json(step)});
  }
  std::vector<std::string> notes = e.decision.notes;
  notes.insert(notes.end(), e.defects.begin(), e.defects.end());
  out["notes"] = notes;
  for (const NodeReads& way : e.reads) {
    const double share = static_cast<double>(way.node) / static_cast<double>(e.reads.front().node);
    out["node_reads"].push_back({{"reads", way.way},
                                 {"node_bytes", way.node},
                                 {"share", std::round(share * 1000) / 1000},
                                 {"all_nodes_bytes", way.all}});
  }
  Json& candidates = out["candidates"] = Json::array();
  for (const TraceStep& step : e.decision.trace) candidates.push_back(candidate_json(step));
  out["next"] = text_or_null(fmt::format("{}", fmt::join(e.next, " ")));
  out["serve"] = text_or_null(fmt::format("{}", fmt::join(e.serve, " ")));
  return out;
}

std::string explanation_text(const Console& console, const Explanation& e, const Json& document) {
  const bool all = console.verbose() > 0;
  std::string out;
  append_wrapped(out, "", 0, document["answer"].get<std::string>());
  out = (e.refusal ? console.bad(out) : console.good(out)) + "\n" + console.bold("asked") + "\n";
  out += fields_text(console, asked_facts(e, document, all), 2);
  if (all) out += classes_text(console, document);
  if (e.decision.backend) {
    out += "\n" + console.bold(e.refusal ? "would be chosen" : "chosen") + "\n" +
           fields_text(console, chosen_facts(e, document), 2);
  }
  if (!e.reads.empty()) {
    out += "\n" + table_text(console, document["node_reads"],
                             {"reads", "node_bytes", "share", "all_nodes_bytes"});
  }
  if (!all) out += tried_text(console, e) + "\nMore: -v shows every fact and class.\n";
  append_next(out, console, e);
  return out;
}

}  // namespace mxfp4
