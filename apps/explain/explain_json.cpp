// Shows what `explain` found as JSON, with each condition.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/explain/explain_report.hpp"
#include "lib/core/deployment_facts.hpp"
#include "lib/layouts/output.hpp"

namespace mxfp4 {
namespace {

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

Json settings_json(const KernelSettings& s) {
  return {{"constructor", s.constructor},
          {"activation_dtype", text_or_null(s.activation_dtype)},
          {"activation_shape", or_null(s.activation_shape)},
          {"block_shape", or_null(s.block_shape)},
          {"is_scale_swizzled", s.scale_swizzled},
          {"mx_alignment", s.mx_alignment},
          {"gemm1_alpha", or_null(s.alpha)},
          {"gemm1_beta", or_null(s.beta)},
          {"gemm1_clamp_limit", or_null(s.clamp_limit)}};
}

Json dims_json(const LayerDims& dims) {
  return {{"num_experts", dims.num_experts},
          {"hidden_size", dims.hidden_size},
          {"intermediate_size", dims.intermediate_size}};
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
  out["quant_config"] = e.settings ? settings_json(*e.settings) : Json();
  const bool has_layout = e.row != nullptr && e.row->layout != nullptr;
  out["layout"] = has_layout ? Json(id_of(*e.row->layout)) : Json();
}

// Null for a candidate that is supported.
Json reason_json(const TraceStep& step) { return step.supported ? Json() : Json(step.reason); }

Json candidate_json(const Candidate& candidate) {
  const TraceStep& step = candidate.step;
  Json out = {{"class", step.candidate}};
  out["backend"] = candidate.backend ? Json(backend_name(*candidate.backend)) : Json();
  out["activation_key"] = or_null(step.key);
  out["supported"] = step.supported;
  out["reason"] = reason_json(step);
  auto& conditions = out["conditions"] = Json::array();
  for (const ConditionAnswer& condition : candidate.conditions) {
    conditions.push_back(
        {{"topic", condition.topic}, {"condition", condition.text}, {"met", condition.met}});
  }
  return out;
}

}  // namespace

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
  auto& trace = out["trace"] = Json::array();
  for (const TraceStep& step : e.decision.trace) {
    trace.push_back({step.candidate, or_null(step.key), step.supported, reason_json(step)});
  }
  std::vector<std::string> notes = e.decision.notes;
  notes.insert(notes.end(), e.defects.begin(), e.defects.end());
  out["notes"] = notes;
  auto& candidates = out["candidates"] = Json::array();
  for (const Candidate& candidate : e.candidates) candidates.push_back(candidate_json(candidate));
  out["next"] = fmt::format("{}", fmt::join(e.next.parts, " "));
  out["next_changes"] = e.next.changed;
  out["start"] = nullptr;
  if (e.start) {
    out["start"] = {{"from", e.start->blob ? "blob" : "checkpoint"},
                    {"reason", text_or_null(e.start->why)}};
  }
  return out;
}

}  // namespace mxfp4
