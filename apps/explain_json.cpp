// What `explain` found, as JSON: every name of the text's, with conditions and what would meet them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "apps/change_words.hpp"
#include "apps/explain_report.hpp"
#include "lib/layouts/layout.hpp"

namespace mxfp4 {
namespace {

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
  out["quant_config"] = e.settings ? settings_json(*e.settings) : nlohmann::ordered_json();
  const bool has_layout = e.row != nullptr && e.row->layout != nullptr;
  out["layout"] = has_layout ? nlohmann::ordered_json(e.row->layout->id) : nlohmann::ordered_json();
}

// {"kind": "variable", "name": "VLLM_X", "value": "1", "words": "--env VLLM_X=1"}
nlohmann::ordered_json changes_json(const std::vector<Change>& changes) {
  auto out = nlohmann::ordered_json::array();
  for (const Change& change : changes) {
    nlohmann::ordered_json json = {{"kind", fact_name(change.kind)}};
    json["name"] = text_or_null(change.name);
    json["value"] = or_null(change.value);
    json["words"] = change_words(change);
    out.push_back(std::move(json));
  }
  return out;
}

nlohmann::ordered_json candidate_json(const Candidate& candidate) {
  const TraceStep& step = candidate.step;
  nlohmann::ordered_json out = {{"class", step.candidate}};
  out["backend"] = candidate.backend ? nlohmann::ordered_json(backend_name(*candidate.backend))
                                     : nlohmann::ordered_json();
  out["activation_key"] = or_null(step.key);
  out["supported"] = step.supported;
  out["reason"] = step.supported ? nlohmann::ordered_json() : nlohmann::ordered_json(step.reason);
  auto& conditions = out["conditions"] = nlohmann::ordered_json::array();
  for (const ConditionAnswer& condition : candidate.conditions) {
    conditions.push_back({{"topic", condition.topic},
                          {"condition", condition.text},
                          {"met", condition.met},
                          {"needs", changes_json(condition.needs)}});
  }
  out["needs"] = changes_json(candidate.needs);
  return out;
}

nlohmann::ordered_json alternative_json(const Explanation& e, const Alternative& other) {
  nlohmann::ordered_json out = {
      {"backend", backend_name(other.backend)},
      {"usable", other.usable()},
      {"chosen", !e.decision.forced && !e.refusal && e.decision.backend == other.backend},
      {"needs", changes_json(other.needs)},
      {"how", changes_json(other.how)}};
  if (!other.conversion) return out;
  out["layout"] = other.conversion->layout->id;
  if (other.conversion->ranks.empty()) return out;
  out["num_ranks"] = other.conversion->ranks.size();
  out["padded"] = dims_json(other.conversion->ranks.front().padded);
  out["blob_bytes"] = other.blob_bytes;
  return out;
}

}  // namespace

Json explanation_json(const RuleSet& rules, const ExplainOptions& options, const Explanation& e) {
  Json out = json_document("explain");
  out["answer"] = answer_text(rules, e);
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
  auto& candidates = out["candidates"] = Json::array();
  for (const Candidate& candidate : e.candidates) candidates.push_back(candidate_json(candidate));
  if (options.all) {
    auto& others = out["alternatives"] = Json::array();
    for (const Alternative& other : e.alternatives) others.push_back(alternative_json(e, other));
  }
  out["next"] = fmt::format("{}", fmt::join(e.next, " "));
  return out;
}

}  // namespace mxfp4
