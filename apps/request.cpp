#include "apps/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "apps/given_facts.hpp"
#include "apps/known_names.hpp"
#include "apps/parsers.hpp"
#include "apps/suggest.hpp"
#include "apps/text_layout.hpp"
#include "formats/config/quantization_override.hpp"
#include "formats/decision/request_json.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/layouts/knobs.hpp"
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

// Takes the number of serving ranks out of the knobs; nullopt if it was not given.
std::optional<int64_t> take_world_size(std::map<std::string, std::string>& knobs) {
  const auto world = knobs.extract(kWorldKnob);
  if (world.empty()) return std::nullopt;
  const std::optional<int64_t> size = whole_number(world.mapped());
  if (size && *size > 0) return size;
  throw Error::usage(fmt::format("'{}' is not a whole number above 0", world.mapped()))
      .at_key(fmt::format("--knob {}", kWorldKnob));
}

// The sizes in "3072x2944"; none in the words that --pad knows.
std::optional<LayerDims> padded_from(const std::string& text) {
  if (text.empty() || text == "auto" || text == "none") return std::nullopt;
  const size_t cross = text.find('x');
  if (cross != std::string::npos) {
    const std::optional<int64_t> hidden = whole_number(text.substr(0, cross));
    const std::optional<int64_t> inter = whole_number(text.substr(cross + 1));
    if (hidden && inter && *hidden > 0 && *inter > 0) return LayerDims{0, *hidden, *inter};
  }
  throw Error::usage(
      fmt::format("--pad: '{}' is not auto, none or two sizes such as 3072x2944", text));
}

// The layout's knobs.
std::map<std::string, std::string> knobs_from(std::map<std::string, std::string> knobs) {
  for (const auto& [name, value] : knobs) {
    if (std::ranges::find(kKnobs, name, &Knob::name) != kKnobs.end()) continue;
    std::vector<std::string> names{std::string(kWorldKnob)};
    for (const Knob& knob : kKnobs) names.emplace_back(knob.name);
    throw Error::usage(fmt::format("--knob: unknown knob '{}'", name))
        .hint(nearest_hint(name, names));
  }
  Target any;
  any.knobs = knobs;
  try {
    check_knobs(any);
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

// The names that the rules know for a fact; none if its values are not in a list.
std::vector<std::string> known_names(const RuleSet& rules, FactKind kind) {
  std::vector<std::string> names;
  if (kind == FactKind::kActivation) {
    names.assign(rules.activations.begin(), rules.activations.end());
  }
  if (kind == FactKind::kAll2AllBackend) {
    names.assign(rules.all2all_backends.begin(), rules.all2all_backends.end());
  }
  if (kind == FactKind::kRouting) {
    for (const NumberedName& row : rules.routing_methods) names.emplace_back(row.name);
  }
  return names;
}

// The value of a flag that takes a name; empty if it was not given.
std::string name_given(const RequestFlags& flags, const FactRow& row) {
  if (row.kind == FactKind::kMachine) return flags.arch;
  return std::visit(
      [&]<class Members>(const Members& members) -> std::string {
        if constexpr (requires { flags.facts.*members.given == std::string(); }) {
          return (flags.facts.*members.given).value_or("");
        } else {
          return "";
        }
      },
      row.members);
}

// Adds to an error about a fact the flag or the --target file that gave the fact. An error about
// the checkpoint already names its file.
[[noreturn]] void rethrow_by_flag(Error error, const RequestFlags& flags, const RuleSet& rules) {
  for (const FactRow& row : deployment_facts()) {
    const std::string value = name_given(flags, row);
    if (value.empty() || error.key() != row.batch) continue;
    const std::vector<std::string> known = known_names(rules, row.kind);
    if (known.empty() || std::ranges::find(known, value) != known.end()) {
      throw Error::usage(error.message()).at_key(row.flag);
    }
    throw Error::usage(fmt::format("{}: unknown name '{}'", row.flag, value))
        .hint(nearest_hint(value, known));
  }
  if (error.key() == "platform") throw platform_fault(flags, error);
  if (error.key() == "arch") error.in_file(flags.target_file.path().string());
  throw Error(error);
}

// The engine's refusal without its list of all candidates and reasons, which explain shows better.
std::string without_candidates(const std::string& message) {
  std::string text = message.substr(0, message.find(" Candidate backends were: "));
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

// What the flags leave open is as the blob was made for, but not what --allow-known-defects let pass:
// the defects of another release are others. Backends' names and variables are an engine's own, and
// --backend and --moe-backend replace each other.
void add_defaults(ConversionRequest& request, const RequestFlags& flags, const Manifest& blob) {
  ConversionRequest asked = request_of(blob, *request.rules).request;
  DeploymentFacts& facts = request.deployment;
  if (blob.engine != request.rules->engine) {
    asked.backend.reset();
    asked.deployment.moe_backend.reset();
    asked.deployment.env.clear();
    asked.knobs.clear();
  }
  if (request.backend) asked.deployment.moe_backend.reset();
  if (!request.backend && !facts.moe_backend) request.backend = asked.backend;
  facts = merge_facts(std::move(facts), std::move(asked.deployment));
  facts.needs_arch = !request.backend;
  request.knobs.merge(asked.knobs);
  if (!request.family) request.family = asked.family;
  if (!request.world_size) request.world_size = asked.world_size;
  if (flags.expert_placement.empty()) request.placement = asked.placement;
  if (flags.pad.empty()) {
    request.pad = asked.pad;
    request.padded = asked.padded;
  }
}

}  // namespace

DeploymentFacts deployment_from(const RequestFlags& flags, const RuleSet& rules) {
  DeploymentFacts facts = flags.facts;
  facts.platform = named_flag(flags.platform, "--platform", platform_from_name,
                              {"cuda", "rocm", "xpu", "cpu", "other"});
  facts.arch = given(flags.arch);
  facts.needs_arch = flags.backend.empty();
  take_libs(flags, rules, facts);
  facts.env = take_env(flags.env);
  facts.selector =
      named_flag(flags.selector, "--selector", selector_from_name, {"gpt_oss", "deepseek_v4"});
  require_moe_backend(rules, facts.moe_backend.value_or(""));
  if (!flags.quantization_config.empty()) {
    const auto config = read_quantization_config(rules, flags.quantization_config);
    if (config) {
      facts.activation_override = config->moe_activation();
      facts.weight_override = config->moe_weight();
    }
  }
  if (facts.arch) take_machine(flags, facts);
  DeploymentFacts whole = merge_facts(std::move(facts), target_facts(flags, rules));
  take_machine(flags, whole);
  return whole;
}

void require_local(const std::filesystem::path& out) {
  if (out.string().find("://") == std::string::npos) return;
  throw Error::usage(
      fmt::format("--output: {}: an address, and this program writes local files only",
                  out.string()))
      .hint("write to a local directory, then copy it there");
}

const RuleSet& rules_for(const RequestFlags& flags, const std::optional<Manifest>& blob) {
  const std::string name = release_asked(flags, blob);
  if (!flags.revision.empty() || name != flags.target_file.facts().engine_version) {
    return rules_named(name);
  }
  return in_context("--target", [&]() -> const RuleSet& { return rules_named(name); });
}

ConversionRequest request_from(const RequestFlags& flags, const RuleSet& rules,
                               const std::optional<Manifest>& blob) {
  ConversionRequest request;
  request.rules = &rules;
  request.deployment = deployment_from(flags, rules);
  request.backend = backend_from(flags.backend);
  request.family = named_flag(flags.family, "--family", family_from_name, {"gpt_oss", "generic"});
  std::map<std::string, std::string> knobs = parse_pairs(flags.knobs, "--knob");
  request.world_size = take_world_size(knobs);
  request.knobs = knobs_from(std::move(knobs));
  if (flags.expert_placement == "round_robin") request.placement = ExpertPlacement::kRoundRobin;
  request.pad = flags.pad != "none";
  request.padded = padded_from(flags.pad);
  request.rank = flags.rank;
  request.allow_known_defects = flags.allow_known_defects;
  request.allow_unservable = flags.allow_unservable;
  if (blob) add_defaults(request, flags, *blob);
  return request;
}

CheckpointOptions checkpoint_from(const InputOptions& options, std::optional<Family> family) {
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

Conversion conversion_for(const RequestFlags& flags, const ConversionRequest& request,
                          const OpenedCheckpoint* checkpoint) {
  try {
    Conversion decided = decide_conversion(request, checkpoint);
    require_tested_versions(flags, decided);
    if (!decided.refusal || decided.decision.backend) return decided;
    if (decided.decision.direct) return decided;  // the engine's own words say what to do
    Error& refusal = *decided.refusal;
    const auto unknown = no_moe_backend(*decided.rules, decided.deployment.moe_backend);
    if (unknown) {
      refusal = Error(*unknown).reference_type(refusal.reference_type_name());
    } else {
      refusal = Error::unsupported(without_candidates(refusal.message()))
                    .reference_type(refusal.reference_type_name())
                    .hint(kExplainHint);
    }
    return decided;
  } catch (const Error& error) {
    rethrow_by_flag(error, flags, *request.rules);
  }
}

}  // namespace mxfp4
