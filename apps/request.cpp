#include "apps/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "apps/known_names.hpp"
#include "apps/suggest.hpp"
#include "apps/text_layout.hpp"
#include "apps/told_facts.hpp"
#include "formats/config/quantization_override.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/oracle/machines.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

// The value of a flag; nullopt if it was not given. `known`: the names from which the hint chooses.
template <class Lookup>
auto named_flag(const std::string& text, std::string_view flag, Lookup lookup,
                const std::vector<std::string>& known) -> decltype(lookup(std::string_view{})) {
  if (text.empty()) return std::nullopt;
  const auto value = lookup(std::string_view(text));
  if (!value) throw unknown_value(flag, text, known);
  return value;
}

std::optional<std::string> given(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

DeploymentFacts deployment_from(const RequestFlags& flags, const RuleSet& rules) {
  DeploymentFacts facts;
  facts.platform = named_flag(flags.platform, "--platform", platform_from_name,
                              {"cuda", "rocm", "xpu", "cpu", "other"});
  facts.arch = given(flags.arch);
  facts.needs_arch = flags.backend.empty();
  take_libs(flags, rules, facts);
  facts.env = take_env(flags.env);
  facts.selector =
      named_flag(flags.selector, "--selector", selector_from_name, {"gpt_oss", "deepseek_v4"});
  require_moe_backend(rules, flags.moe_backend);
  facts.moe_backend = given(flags.moe_backend);
  if (!flags.quantization_config.empty()) {
    const auto config = read_quantization_config(rules, flags.quantization_config);
    if (config) {
      facts.activation_override = config->moe_activation();
      facts.weight_override = config->moe_weight();
    }
  }
  facts.activation = given(flags.activation);
  facts.routing_method = given(flags.routing_method);
  // Sizes and switches count as given only if they differ from the default.
  const auto size = [](int64_t n) { return n == 1 ? std::nullopt : std::optional(n); };
  const auto flag = [](bool on) { return on ? std::optional(true) : std::nullopt; };
  facts.lora = flag(flags.enable_lora);
  facts.tp_size = size(flags.tp_size);
  facts.pcp_size = size(flags.pcp_size);
  facts.dp_size = size(flags.dp_size);
  facts.enable_expert_parallel = flag(flags.enable_expert_parallel);
  facts.all2all_backend = given(flags.all2all_backend);
  facts.enable_eplb = flag(flags.enable_eplb);
  facts.sequence_parallel = flag(flags.sequence_parallel);
  if (facts.arch) take_machine(flags, facts);
  DeploymentFacts whole = merge_facts(std::move(facts), target_facts(flags, rules));
  take_machine(flags, whole);
  return whole;
}

// The value of --backend; nullopt if it was not given.
std::optional<Backend> backend_from(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const std::optional<Backend> backend = backend_from_name(name);
  if (backend) return backend;
  std::vector<std::string> names;
  for (const Backend known : all_backends()) names.emplace_back(backend_name(known));
  throw Error::usage(fmt::format("--backend: unknown backend '{}'", name))
      .hint(nearest_hint(name, names, "mxfp4-repack list backends shows them"));
}

std::map<std::string, std::string> knobs_from(const std::vector<std::string>& items) {
  std::map<std::string, std::string> knobs = parse_pairs(items, "--knob");
  for (const auto& [name, value] : knobs) {
    if (std::ranges::find(kKnobNames, name) != kKnobNames.end()) continue;
    throw Error::usage(fmt::format("--knob: unknown knob '{}'", name))
        .hint(nearest_hint(name, {kKnobNames.begin(), kKnobNames.end()}));
  }
  // A wrong value is refused even if the layout does not use the knob.
  Target any;
  any.knobs = knobs;
  try {
    (void)params_dtype(any), (void)marlin_input_dtype(any), (void)humming_input_type(any);
    (void)cuda_compiler(any), (void)aiter_weight(any);
  } catch (const Error& error) {
    throw Error::usage("--" + error.message());  // "knob NAME: ..."
  }
  return knobs;
}

std::optional<Style> style_from(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const std::optional<Style> style = style_from_name(name);
  if (style) return style;
  throw Error::usage(fmt::format("--style: unknown style '{}'", name))
      .hint(nearest_hint(name, known_styles()));
}

// The names that the rules know for the fact `key`; none if its values are not in a list.
std::vector<std::string> known_names(const RuleSet& rules, std::string_view key) {
  std::vector<std::string> names;
  if (key == "activation") names.assign(rules.activations.begin(), rules.activations.end());
  if (key == "all2all_backend") {
    names.assign(rules.all2all_backends.begin(), rules.all2all_backends.end());
  }
  if (key == "routing_method") {
    for (const NumberedName& row : rules.routing_methods) names.emplace_back(row.name);
  }
  return names;
}

// Adds to an error about a fact the flag or the --target file that gave the fact. An error about
// the checkpoint already names its file.
[[noreturn]] void rethrow_by_flag(Error error, const RequestFlags& flags, const RuleSet& rules) {
  struct Name {
    std::string_view key;
    std::string_view flag;
    const std::string& value;
  };
  const Name names[] = {
      {"arch", "--arch", flags.arch},
      {"activation", "--activation", flags.activation},
      {"routing_method", "--routing-method", flags.routing_method},
      {"all2all_backend", "--all2all-backend", flags.all2all_backend},
  };
  for (const auto& [key, flag, value] : names) {
    if (value.empty() || error.key() != key) continue;
    const std::vector<std::string> known = known_names(rules, key);
    if (known.empty() || std::ranges::find(known, value) != known.end()) {
      throw Error::usage(error.message()).at_key(flag);
    }
    throw Error::usage(fmt::format("{}: unknown name '{}'", flag, value))
        .hint(nearest_hint(value, known));
  }
  if (error.key() == "platform") throw platform_fault(flags, error);
  if (error.key() == "arch") error.in_file(flags.target_file.path().string());
  throw Error(error);
}

// Throws Error::input for an input that is a machine's name, as in "explain H100".
void refuse_machine(const std::filesystem::path& input) {
  std::error_code ignored;
  const std::string word = input.string();
  if (std::filesystem::exists(input, ignored) || find_machine(word) == nullptr) return;
  throw Error::input("a machine, not a checkpoint")
      .in_file(word)
      .hint(fmt::format("did you mean --arch {}?", shell_word(word)));
}

// "--tp-size could be 2, 3, 6 or 8"; empty if no other size helps.
std::string size_hint(const WorkingSizes& working) {
  std::vector<std::string> sizes;
  sizes.reserve(working.values.size());
  for (const int64_t size : working.values) sizes.push_back(std::to_string(size));
  if (sizes.empty()) return "";
  return fmt::format("{} could be {}", flag_of(working.size), alternatives(sizes));
}

}  // namespace

std::string_view flag_of(ParallelSize size) {
  if (size == &DeploymentFacts::dp_size) return "--dp-size";
  return size == &DeploymentFacts::pcp_size ? "--pcp-size" : "--tp-size";
}

const RuleSet& rules_for(const RequestFlags& flags) {
  if (!flags.revision.empty()) return rules_named(flags.revision);
  const std::optional<std::string> version = flags.target_file.facts().engine_version;
  return version ? rules_of_engine(*version) : default_revision();
}

ConversionRequest request_from(const RequestFlags& flags) {
  return request_from(flags, rules_for(flags));
}

ConversionRequest request_from(const RequestFlags& flags, const RuleSet& rules) {
  ConversionRequest request;
  request.rules = &rules;
  request.rules_assumed = rules_assumed(flags);
  request.deployment = deployment_from(flags, rules);
  request.backend = backend_from(flags.backend);
  request.family = named_flag(flags.family, "--family", family_from_name, {"gpt_oss", "generic"});
  request.knobs = knobs_from(flags.knobs);
  if (flags.expert_placement == "round_robin") request.placement = ExpertPlacement::kRoundRobin;
  request.pad = flags.pad == "auto";
  request.rank = flags.rank;
  request.allow_known_defects = flags.allow_known_defects;
  request.allow_unservable = flags.allow_unservable;
  return request;
}

CheckpointOptions checkpoint_from(const InputOptions& options, std::optional<Family> family) {
  refuse_machine(options.path);
  CheckpointOptions checkpoint;
  checkpoint.path = options.path;
  checkpoint.style = style_from(options.style);
  checkpoint.family = family;
  if (!options.model_config.empty()) {
    checkpoint.config_text = options.model_config.text();
    checkpoint.config_path = options.model_config.path();
  }
  checkpoint.layers = parse_layers(options.layers);
  return checkpoint;
}

DecidedConversion conversion_for(const RequestFlags& flags, const ConversionRequest& request,
                                 const OpenedCheckpoint* checkpoint) {
  try {
    DecidedConversion decided{decide_conversion(request, checkpoint)};
    require_tested_versions(flags, decided);
    if (!decided.refusal) return decided;
    decided.working = sizes_that_work(request, decided, checkpoint);
    Error& refusal = *decided.refusal;
    if (!decided.decision.backend) {
      const auto unknown = no_moe_backend(*decided.rules, decided.deployment.moe_backend);
      if (unknown) {
        refusal = Error(*unknown).reference_type(refusal.reference_type_name());
      } else {
        refusal.hint("mxfp4-repack explain shows every candidate and its reason");
      }
    } else if (refusal.hint_text().empty()) {
      refusal.hint(size_hint(decided.working));
    }
    return decided;
  } catch (const Error& error) {
    rethrow_by_flag(error, flags, *request.rules);
  }
}

}  // namespace mxfp4
