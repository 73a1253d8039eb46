// Walks the checkpoint tables of a rule set.
#include "lib/oracle/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/error.hpp"
#include "lib/oracle/question.hpp"

namespace mxfp4 {
namespace {

std::string with_fix(std::string text, std::string_view fixed_in) {
  if (!fixed_in.empty()) text += fmt::format(" (fixed in {})", fixed_in);
  return text;
}

// The caller's own choice for this deployment; null: it asks the oracle.
const DirectRow* find_direct_row(const Question& question, const CallerRow* caller) {
  if (caller == nullptr) return nullptr;
  const auto holds = [&](const DirectRow& row) { return row.when.holds(question); };
  const std::vector<DirectRow>& rows = caller->direct.empty() ? caller->exceptions : caller->direct;
  const auto row = std::ranges::find_if(rows, holds);
  if (row != rows.end()) return &*row;
  if (!caller->direct.empty()) throw Error::internal("no direct rule matches");
  return nullptr;
}

// What a caller chooses without the oracle, or the reason why the engine then stops.
Decision decide_directly(const Question& question, const CallerRow& caller, const DirectRow& row) {
  Decision decision;
  decision.revision = question.rules.name;
  decision.direct = true;
  if (!row.note.empty()) decision.notes.emplace_back(row.note);
  TraceStep step;
  step.candidate = row.experts_class;
  step.supported = row.backend.has_value();
  if (!row.backend && row.refusal.text.empty()) {
    step.reason = "no layout is known for these kernels";
    decision.error_type = "NotImplementedError";
    decision.error_message = fmt::format("{} runs {} experts here, for which no layout is known",
                                         caller.method, row.experts_class);
  } else if (!row.backend) {
    step.reason = fill_text(row.refusal.text, question);
    decision.error_type = row.refusal.type;
    decision.error_message = step.reason;
  } else if (row.asked_key) {
    Question asked = question;
    if (!row.asked_key->empty()) asked.key = *row.asked_key;
    step = ask_class(asked, row.experts_class);
    if (!step.supported) {
      decision.error_type = "ValueError";
      decision.error_message = fmt::format("{} does not support this MoE deployment since {}.",
                                           row.experts_class, step.reason);
    }
  }
  step.backend = row.backend;
  if (step.supported) {
    decision.backend = row.backend;
    decision.experts_class = row.experts_class;
    if (!row.knob.empty()) decision.knobs.emplace(row.knob, row.knob_value);
  }
  decision.trace.push_back(std::move(step));
  return decision;
}

// The row that serves the deployment's model and moe_backend; null: the oracle is asked.
const ModelBackendRow* asked_by_model(const Question& question) {
  const Deployment& deployment = question.deployment;
  const auto row = std::ranges::find_if(question.rules.model_backends, [&](const auto& candidate) {
    return candidate.moe_backend == deployment.moe_backend &&
           std::ranges::find(candidate.model_types, deployment.model_type) !=
               candidate.model_types.end() &&
           candidate.when.holds(question);
  });
  return row == question.rules.model_backends.end() ? nullptr : &*row;
}

// What the model's file answers: the row's backend, or the refusal of the first requirement that is not
// met.
Decision decide_by_model(const Question& question, const ModelBackendRow& row) {
  Decision decision;
  decision.revision = question.rules.name;
  decision.direct = true;
  TraceStep step;
  step.candidate = row.experts_class;
  step.backend = row.backend;
  const auto missing = std::ranges::find_if_not(
      row.requirements,
      [&](const RequirementRow& requirement) { return requirement.must_hold.holds(question); });
  if (missing == row.requirements.end()) {
    step.supported = true;
    decision.backend = row.backend;
    decision.experts_class = row.experts_class;
    decision.notes.emplace_back("the model's own file takes this kernel: the oracle is not asked");
  } else {
    step.reason = fill_text(missing->refusal.text, question);
    step.needs = missing->must_hold.text;
    decision.error_type = missing->refusal.type;
    decision.error_message = step.reason;
  }
  decision.trace.push_back(std::move(step));
  return decision;
}

Decision force(const RuleSet& rules, Backend backend) {
  Decision decision;
  decision.revision = rules.name;
  decision.backend = backend;
  decision.forced = true;
  TraceStep step;
  step.candidate = fmt::format("{} (forced by --backend)", backend_name(backend));
  step.supported = true;
  decision.trace.push_back(std::move(step));
  return decision;
}

// Puts another backend in place of the oracle's choice where the caller does.
void replace_choice(const RuleSet& rules, const Question& question, const CallerRow& caller,
                    Decision& decision) {
  const Condition& when = caller.replaced_when;
  if (!decision.backend || !when.holds || !when.holds(question)) return;
  if (decision.backend == caller.replacement) return;
  const BackendRow* row = find_backend_row(rules, caller.replacement);
  if (row == nullptr) throw Error::internal("a caller runs a backend that has no row");
  decision.notes.push_back(fmt::format("{} runs {} in place of {}, which was chosen: {}",
                                       caller.method, backend_name(caller.replacement),
                                       backend_name(*decision.backend), when.text));
  decision.backend = caller.replacement;
  decision.experts_class = row->classes.front();
}

// The answer of the first that takes the question: the model's file, the method class, the oracle.
Decision decide_unforced(const RuleSet& rules, const Question& question,
                         const Deployment& deployment, const CallerRow* caller) {
  if (const ModelBackendRow* row = asked_by_model(question)) return decide_by_model(question, *row);
  const DirectRow* direct = find_direct_row(question, caller);
  const bool asks = direct == nullptr || direct->asks_oracle;
  if (asks && rules.selectors.empty()) {
    throw Error::usage(fmt::format("{} chooses by the checkpoint's config, and there is none",
                                   engine_title(rules.engine)))
        .hint("--backend names a backend, --model-config a config.json");
  }
  Decision decision =
      asks ? select_backend(rules, deployment) : decide_directly(question, *caller, *direct);
  if (caller != nullptr) replace_choice(rules, question, *caller, decision);
  return decision;
}

}  // namespace

const CallerRow* find_caller(const RuleSet& rules, const ModelConfig& config) {
  if (!config.quantization && !config.original_gpt_oss) return nullptr;
  ModelConfig known = config;
  if (!known.quantization)
    known.quantization.emplace().name = "mxfp4";  // original gpt-oss says nothing
  for (const CallerRow& row : rules.callers) {
    if (row.holds(known)) return &row;
  }
  throw Error::unsupported(
      fmt::format("quant_method '{}' with model_type '{}' has no MXFP4 experts at {}",
                  known.quantization->name, known.model_type, rules.name));
}

const CallerRow* usual_caller(const RuleSet& rules, Selector selector,
                              std::optional<Family> family) {
  const bool has_oracle = !rules.selectors.empty();
  const auto row = std::ranges::find_if(rules.callers, [&](const CallerRow& caller) {
    return (!has_oracle || caller.direct.empty()) && caller.selector == selector &&
           caller.family == family.value_or(caller.family);
  });
  return row == rules.callers.end() ? nullptr : &*row;
}

Family family_of(const CallerRow* caller, std::optional<Family> given, Selector selector) {
  if (given) return *given;
  if (caller != nullptr) return caller->family;
  return selector == Selector::kGptOss ? Family::kGptOss : Family::kGeneric;
}

Decision decide(const RuleSet& rules, const Deployment& deployment, const ModelFacts& model,
                std::optional<Backend> forced) {
  const Question question = make_question(rules, deployment);
  const CallerRow* caller = model.caller;
  Decision decision =
      forced ? force(rules, *forced) : decide_unforced(rules, question, deployment, caller);
  for (LoadNote& note : load_notes(rules, deployment, model, decision)) {
    decision.notes.push_back(std::move(note.text));
  }
  return decision;
}

const FusedSharedRow* fused_shared_row(const RuleSet& rules, const Deployment& deployment,
                                       std::optional<bool> mxfp4) {
  const Question question = make_question(rules, deployment);
  const auto found = std::ranges::find_if(rules.fused_shared, [&](const FusedSharedRow& row) {
    const bool named =
        std::ranges::find(row.model_types, deployment.model_type) != row.model_types.end();
    return named && (!row.if_mxfp4 || mxfp4.value_or(true)) && row.when.holds(question);
  });
  return found == rules.fused_shared.end() ? nullptr : &*found;
}

std::vector<LoadNote> load_notes(const RuleSet& rules, const Deployment& deployment,
                                 const ModelFacts& model, const Decision& decision) {
  std::vector<LoadNote> notes;
  // Where the model's own file took a kernel, there is no method class whose loading could stop.
  if (decision.backend && find_model_backend(rules, *decision.backend) != nullptr) return notes;
  const CallerRow* caller = model.caller;
  if (caller != nullptr && !caller->note.empty()) {
    notes.push_back({with_fix(std::string(caller->note), caller->note_fixed_in)});
  }
  if (!decision.backend) return notes;
  const Question question = make_question(rules, deployment);
  const Family family = family_of(caller, model.family, deployment.selector);
  const LoadFacts facts{.question = question,
                        .decision = decision,
                        .caller = caller,
                        .family = family,
                        .converter = find_converter_row(rules, *decision.backend, family),
                        .biases = model.biases,
                        .input_scales = model.input_scales};
  const BackendRow* row = find_backend_row(rules, *decision.backend);
  const bool has_class = row != nullptr && !row->classes.empty();
  const auto number = [](const std::optional<int64_t>& value) {
    return value ? std::to_string(*value) : "";
  };
  const std::string heads = number(deployment.attention_heads);
  const std::string kv_heads = number(deployment.kv_heads);
  const std::string ranks = std::to_string(deployment.parallel.tp_size);
  const std::string capability =
      caller == nullptr ? "" : std::to_string(caller->minimum_capability);
  for (const LoadNoteRow& note : rules.load_notes) {
    if (!note.holds(facts)) continue;
    std::string text = fill_text(note.text, question,
                                 {{"value", backend_name(*decision.backend)},
                                  {"family", family_name(family)},
                                  {"method", caller == nullptr ? "" : caller->method},
                                  {"minimum_capability", capability},
                                  {"attention_heads", heads},
                                  {"kv_heads", kv_heads},
                                  {"class", deployment.model_class},
                                  {"quantization", deployment.quantization},
                                  {"tp_size", ranks},
                                  {"first_class", has_class ? row->classes.front() : ""}});
    notes.push_back({with_fix(std::move(text), note.fixed_in), note.stops});
  }
  return notes;
}

std::optional<InputDtype> input_dtype(const RuleSet& rules, const Deployment& deployment,
                                      const CallerRow* caller, const Target& target) {
  const auto row = std::ranges::find_if(rules.input_dtypes, [&](const InputDtypeRow& candidate) {
    return candidate.backend == target.backend && candidate.family == target.family;
  });
  if (row == rules.input_dtypes.end()) return std::nullopt;
  InputDtype out{.knob = row->knob};
  const auto variable = deployment.env.find(std::string(row->variable));
  if (variable != deployment.env.end() && !variable->second.empty()) return out;
  if (row->checkpoint && caller == nullptr) return out;
  out.value = "none";
  if (row->checkpoint && !caller->input_dtype.empty()) {
    out.value = std::string(caller->input_dtype);
    const auto taken = std::ranges::find_if(row->taken, [&](const TakenTypeRow& other) {
      return other.key == caller->model_activation && other.holds(target);
    });
    if (taken != row->taken.end() && !deployment.activation_override) {
      out.value = std::string(taken->type);
    }
  } else if (row->override && deployment.activation_override) {
    const std::string& key = *deployment.activation_override;
    const auto type = std::ranges::find(row->types, key, &KeyTypeRow::key);
    out.value = type == row->types.end() ? key : std::string(type->type);
  }
  return out;
}

Target make_target(const Deployment& deployment, const Decision& decision, Family family) {
  if (!decision.backend) throw Error::internal("a target needs a backend");
  Target target;
  target.backend = *decision.backend;
  target.family = family;
  target.platform = deployment.platform;
  target.arch = deployment.arch;
  target.world_size = deployment.parallel.tp_size;
  // gpt-oss has one activation; of a generic model the assumed one says nothing.
  const bool known = family == Family::kGptOss || !deployment.activation_assumed;
  if (known) target.activation = deployment.activation;
  target.env = deployment.env;
  return target;
}

std::vector<std::string> defect_notes(const RuleSet& rules, const DefectFacts& facts) {
  std::vector<std::string> notes;
  for (const DefectRow& row : rules.defects) {
    if (row.holds(facts)) notes.push_back(with_fix(std::string(row.text), row.fixed_in));
  }
  return notes;
}

std::map<std::string, std::string> parameter_names(const RuleSet& rules, const CallerRow* caller,
                                                   Backend backend) {
  std::map<std::string, std::string> names;
  if (caller == nullptr) return names;
  for (const ParameterNameRow& row : rules.parameter_names) {
    if (row.method != caller->method || row.except == backend) continue;
    names.emplace(row.in_blob, row.in_engine);
  }
  return names;
}

std::vector<std::string_view> models_that_ask(const RuleSet& rules, std::string_view moe_backend) {
  std::vector<std::string_view> models;
  for (const ModelBackendRow& row : rules.model_backends) {
    if (row.moe_backend != moe_backend) continue;
    for (const std::string_view model : row.model_types) {
      if (std::ranges::find(models, model) == models.end()) models.push_back(model);
    }
  }
  return models;
}

const CallerRow* find_method(const RuleSet& rules, std::string_view method) {
  const auto row = std::ranges::find(rules.callers, method, &CallerRow::method);
  return row == rules.callers.end() ? nullptr : &*row;
}

bool rounds_sizes(const CallerRow* caller, Backend backend) {
  if (caller == nullptr) return true;
  return caller->rounds && caller->never_rounds != backend;
}

LayerDims rounding_multiples(const RuleSet& rules, const CallerRow* caller, const Target& target) {
  const LayerDims ones{1, 1, 1};
  const std::string_view method = caller == nullptr ? "" : caller->method;
  return rounds_sizes(caller, target.backend) ? round_up_sizes(rules, target, ones, method) : ones;
}

}  // namespace mxfp4
