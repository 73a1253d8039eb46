#include "apps/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "apps/known_names.hpp"
#include "apps/suggest.hpp"
#include "formats/config/deployment_json.hpp"
#include "formats/config/quant_config.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

// The value of a flag, or nothing when it was not given. `known` is what the hint chooses from.
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

std::set<std::string> split_list(const std::string& text) {
  std::set<std::string> items;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) items.insert(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

DeploymentRequest read_target(const FlagFile& file) {
  if (file.empty()) return {};
  const std::string& text = file.text();
  return in_file(file.path().string(), [&] { return parse_target(text); });
}

DeploymentRequest deployment_from(const DeploymentOptions& options, const RuleSet& rules) {
  DeploymentRequest request;
  request.platform = named_flag(options.platform, "--platform", platform_from_name,
                                {"cuda", "rocm", "xpu", "cpu", "other"});
  request.arch = given(options.arch);
  request.needs_arch = options.backend.empty();
  if (options.libs == kNoLibs) {
    request.libs.emplace();
  } else if (!options.libs.empty()) {
    request.libs = split_list(options.libs);
  }
  request.absent_libs = {options.no_libs.begin(), options.no_libs.end()};
  request.env = parse_pairs(options.env, "--env");
  request.selector =
      named_flag(options.selector, "--selector", selector_from_name, {"gpt_oss", "deepseek_v4"});
  request.moe_backend = given(options.moe_backend);
  if (!options.quantization_config.empty()) {
    const auto config = read_quantization_config(rules, options.quantization_config);
    if (config) request.activation_override = config->moe_activation();
  }
  request.activation = given(options.activation);
  request.routing_method = given(options.routing_method);
  // Only what differs from the default is said, so that what is shown back is what was typed.
  const auto size = [](int64_t n) { return n == 1 ? std::nullopt : std::optional(n); };
  const auto flag = [](bool on) { return on ? std::optional(true) : std::nullopt; };
  request.lora = flag(options.enable_lora);
  request.tp_size = size(options.tp_size);
  request.pcp_size = size(options.pcp_size);
  request.dp_size = size(options.dp_size);
  request.enable_expert_parallel = flag(options.enable_expert_parallel);
  request.all2all_backend = given(options.all2all_backend);
  request.enable_eplb = flag(options.enable_eplb);
  request.sequence_parallel = flag(options.sequence_parallel);
  return merge_requests(std::move(request), read_target(options.target_file));
}

// --backend, if it was given.
std::optional<Backend> backend_from(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const std::optional<Backend> backend = backend_from_name(name);
  if (backend) return backend;
  std::vector<std::string> names;
  for (const Backend known : all_backends()) names.emplace_back(backend_name(known));
  const std::string hint = nearest_hint(name, names);
  throw Error::usage(fmt::format("--backend: unknown backend '{}'", name))
      .hint(hint.empty() ? "mxfp4-repack list backends shows them" : hint);
}

std::map<std::string, std::string> knobs_from(const std::vector<std::string>& items) {
  std::map<std::string, std::string> knobs = parse_pairs(items, "--knob");
  for (const auto& [name, value] : knobs) {
    if (std::ranges::find(kKnobNames, name) != kKnobNames.end()) continue;
    throw Error::usage(fmt::format("--knob: unknown knob '{}'", name))
        .hint(nearest_hint(name, {kKnobNames.begin(), kKnobNames.end()}));
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

// A name that the rules do not know stands in the checkpoint, in the --target file or in a flag.
// `error` is about one of them.
[[noreturn]] void rethrow_by_flag(Error error, const DeploymentOptions& options) {
  struct Name {
    std::string_view key;
    std::string_view flag;
    const std::string& value;
  };
  const Name names[] = {
      {"arch", "--arch", options.arch},
      {"activation", "--activation", options.activation},
      {"routing_method", "--routing-method", options.routing_method},
      {"all2all_backend", "--all2all-backend", options.all2all_backend},
  };
  for (const auto& [key, flag, value] : names) {
    if (!value.empty() && error.key() == key) throw Error::usage(error.message()).at_key(flag);
  }
  if (error.key() == "arch") error.in_file(options.target_file.path().string());
  throw Error(error);
}

}  // namespace

const RuleSet& rules_for(const DeploymentOptions& options) {
  if (!options.revision.empty()) return rules_named(options.revision);
  const std::optional<std::string> version = read_target(options.target_file).engine_version;
  return version ? rules_of_engine(*version) : default_revision();
}

ConversionRequest request_from(const DeploymentOptions& options) {
  return request_from(options, rules_for(options));
}

ConversionRequest request_from(const DeploymentOptions& options, const RuleSet& rules) {
  ConversionRequest request;
  request.rules = &rules;
  request.deployment = deployment_from(options, rules);
  request.backend = backend_from(options.backend);
  request.family = named_flag(options.family, "--family", family_from_name, {"gpt_oss", "generic"});
  request.knobs = knobs_from(options.knobs);
  if (options.expert_placement == "round_robin") request.placement = ExpertPlacement::kRoundRobin;
  request.pad = options.pad == "auto";
  request.rank = options.rank;
  request.allow_known_defects = options.allow_known_defects;
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

Conversion conversion_for(const DeploymentOptions& options, const ConversionRequest& request,
                          const OpenedCheckpoint* checkpoint, std::string_view otherwise) {
  try {
    Conversion conversion = decide_conversion(request, checkpoint);
    if (conversion.refusal && !conversion.decision.backend) {
      const std::string near =
          moe_backend_hint(*conversion.rules, conversion.deployment.moe_backend);
      conversion.refusal->hint(near.empty() ? std::string(otherwise) : near);
    }
    return conversion;
  } catch (const Error& error) {
    rethrow_by_flag(error, options);
  }
}

}  // namespace mxfp4
