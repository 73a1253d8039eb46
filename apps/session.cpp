#include "apps/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "apps/known_names.hpp"
#include "apps/suggest.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/blob/seekable_zstd.hpp"
#include "formats/checkpoint/open_source.hpp"
#include "formats/config/config_json.hpp"
#include "formats/config/deployment_json.hpp"
#include "formats/config/quant_config.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/oracle/question.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

std::optional<ModelConfig> read_config(const InputOptions& options, const Source& source) {
  const std::optional<std::string> text = config_text(options, source);
  if (!text) return std::nullopt;
  const bool flag = !options.model_config.empty();
  return parse_model_config(
      *text, (flag ? options.model_config.path() : options.path / kConfigName).string());
}

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
  return in_context(file.path().string(), [&] { return parse_target(text); });
}

// A name that the rules do not know is an input's fault, but for one that stands in a flag.
void check_names(const RuleSet& rules, const Deployment& deployment,
                 const DeploymentOptions& options) {
  struct Name {
    std::string_view key;
    std::string_view flag;
    const std::string& value;
  };
  const Name names[] = {
      {"arch:", "--arch:", options.arch},
      {"activation:", "--activation:", options.activation},
      {"routing_method:", "--routing-method:", options.routing_method},
      {"all2all_backend:", "--all2all-backend:", options.all2all_backend},
  };
  try {
    (void)make_question(rules, deployment);
  } catch (Error& error) {
    const std::string_view text = error.what();
    for (const auto& [key, flag, value] : names) {
      if (value.empty() || !text.starts_with(key)) continue;
      throw Error::usage(fmt::format("{}{}", flag, text.substr(key.size())));
    }
    if (text.starts_with("arch:")) error.add_context(options.target_file.path().string());
    throw;
  }
}

// Runs `body`; an error about the input that leaves it names the first of `files` unless it names
// one of them, or a file in it.
template <class Body>
auto naming(std::initializer_list<std::filesystem::path> files, Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (Error& error) {
    const std::string_view text = error.what();
    const bool named = std::ranges::any_of(files, [&](const std::filesystem::path& file) {
      return !file.empty() && text.find(file.string()) != std::string_view::npos;
    });
    if (!named && error.kind() != ErrorKind::kUsage) error.add_context(files.begin()->string());
    throw;
  }
}

// The method class may load a style otherwise than the class that the style is known by.
void apply_caller(ModelLayers& model, const CallerRow* caller, std::optional<Family> told) {
  if (caller == nullptr) return;
  model.family = told.value_or(caller->family);
  model.rounds = caller->rounds;
  model.scale_fill = caller->scale_fill.value_or(model.scale_fill);
  model.rounds_emulation = caller->never_rounds != Backend::EMULATION;
}

}  // namespace

std::optional<Family> family_flag(const std::string& family) {
  return named_flag(family, "--family", family_from_name, {"gpt_oss", "generic"});
}

std::optional<std::string> config_text(const InputOptions& options, const Source& source) {
  return options.model_config.empty() ? source.config_json() : options.model_config.text();
}

OpenInput open_input(const InputOptions& options, const std::string& family, const RuleSet& rules) {
  return open_input(open_source(options.path), options, family, rules);
}

OpenInput open_input(std::shared_ptr<Source> source, const InputOptions& options,
                     const std::string& family, const RuleSet& rules) {
  OpenInput input;
  input.path = options.path;
  input.source = std::move(source);
  input.config = read_config(options, *input.source);
  FindOptions find;
  find.generic_biases = rules.loader.loads_biases;
  find.attributes = input.source->attributes();
  find.partial = !options.model_config.empty();
  if (!options.style.empty()) {
    find.style = style_from_name(options.style);
    if (!find.style) {
      throw Error::usage(fmt::format("--style: unknown style '{}'", options.style))
          .hint(nearest_hint(options.style, known_styles()));
    }
  }
  find.family = family_flag(family);
  std::vector<NamedTensor> tensors;
  for (const SourceTensor& tensor : input.source->tensors()) {
    tensors.push_back({tensor.name, tensor.spec, tensor.file});
  }
  input.model = naming({options.path, options.model_config.path()}, [&] {
    return find_expert_layers(tensors, input.config ? &*input.config : nullptr, find);
  });
  if (input.model.layers.empty()) {
    throw Error::input(fmt::format("{}: no MXFP4 expert layers among its {} tensors",
                                   options.path.string(), tensors.size()));
  }
  if (input.config && input.model.style != Style::kLoaded) {
    apply_caller(input.model, find_caller(rules, *input.config), find.family);
  }
  const size_t all_layers = input.model.layers.size();
  select_layers(input.model, options.layers);
  input.layers_left_out = all_layers - input.model.layers.size();
  return input;
}

void select_layers(ModelLayers& model, const std::string& layers) {
  const std::set<int64_t> wanted = parse_layers(layers);
  if (wanted.empty()) return;
  for (int64_t index : wanted) {
    if (std::ranges::find(model.layers, index, &ExpertLayer::index) == model.layers.end()) {
      throw Error::usage(
          fmt::format("--layers: there is no MoE layer {}; the MoE layers are {} to {}", index,
                      model.layers.front().index, model.layers.back().index));
    }
  }
  std::erase_if(model.layers,
                [&](const ExpertLayer& layer) { return !wanted.contains(layer.index); });
}

LayerDims common_dims(const ModelLayers& model) {
  const ExpertLayer& first = model.layers.front();
  for (const ExpertLayer& layer : model.layers) {
    if (layer.dims == first.dims) continue;
    throw Error::input(fmt::format("{}: {} experts, H {}, I {}, but {} has {}, {}, {}",
                                   layer.prefix, layer.dims.num_experts, layer.dims.hidden_size,
                                   layer.dims.intermediate_size, first.prefix,
                                   first.dims.num_experts, first.dims.hidden_size,
                                   first.dims.intermediate_size))
        .hint("convert layers of different sizes separately, with --layers");
  }
  return first.dims;
}

void warn_of_missing_ranks(const std::filesystem::path& path,
                           const std::vector<Manifest>& manifests, const Console& console) {
  const std::string missing = missing_ranks(path, manifests);
  if (!missing.empty()) console.warn(missing);
}

const RuleSet& rules_of_blob(const Manifest& manifest) {
  const Release* release = find_release(manifest.revision);
  return release == nullptr ? default_revision() : rules_of(*release);
}

const RuleSet& rules_for(const DeploymentOptions& options) {
  if (!options.revision.empty()) return rules_named(options.revision);
  const std::optional<std::string> version = read_target(options.target_file).engine_version;
  return version ? rules_of_engine(*version) : default_revision();
}

DeploymentRequest request_from(const DeploymentOptions& options, const RuleSet& rules) {
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

std::optional<Backend> forced_backend(const DeploymentOptions& options) {
  if (options.backend.empty()) return std::nullopt;
  const std::optional<Backend> backend = backend_from_name(options.backend);
  if (!backend) {
    std::vector<std::string> names;
    for (Backend known : all_backends()) names.emplace_back(backend_name(known));
    const std::string hint = nearest_hint(options.backend, names);
    throw Error::usage(fmt::format("--backend: unknown backend '{}'", options.backend))
        .hint(hint.empty() ? "mxfp4-repack list backends shows them" : hint);
  }
  return backend;
}

ModelFacts facts_of(const OpenInput& input, const RuleSet& rules) {
  ModelFacts facts;
  facts.config = input.config ? &*input.config : nullptr;
  if (facts.config != nullptr && input.model.style != Style::kLoaded) {
    facts.caller = find_caller(rules, *facts.config);
  }
  facts.family = input.model.family;
  const ExpertLayer& layer = input.model.layers.front();
  facts.biases = layer.has(Slot::kW13Bias);
  facts.input_scales = layer.has(Slot::kW13InputScale);
  return facts;
}

Choice choose_backend(const DeploymentOptions& options, const OpenInput& input) {
  const RuleSet& rules = rules_for(options);
  return choose_backend(options, rules, request_from(options, rules), facts_of(input, rules));
}

Choice choose_backend(const DeploymentOptions& options, const RuleSet& rules,
                      const DeploymentRequest& request, const ModelFacts& facts) {
  Choice choice;
  choice.rules = &rules;
  choice.caller = facts.caller;
  choice.deployment = resolve_deployment(rules, request, facts.caller, facts.config);
  check_names(rules, choice.deployment, options);
  choice.family = family_of(facts.caller, facts.family, choice.deployment.selector);
  choice.decision = decide(rules, {.deployment = choice.deployment,
                                   .caller = facts.caller,
                                   .family = facts.family,
                                   .forced = forced_backend(options),
                                   .biases = facts.biases,
                                   .input_scales = facts.input_scales});
  if (!choice.decision.backend) return choice;
  choice.target = make_target(choice.deployment, choice.decision, choice.family);
  choice.target.knobs = parse_pairs(options.knobs, "--knob");
  for (const auto& [name, value] : choice.target.knobs) {
    if (std::ranges::find(kKnobNames, name) != kKnobNames.end()) continue;
    throw Error::usage(fmt::format("--knob: unknown knob '{}'", name))
        .hint(nearest_hint(name, {kKnobNames.begin(), kKnobNames.end()}));
  }
  if (const auto world = choice.target.knobs.find("tp_size"); world != choice.target.knobs.end()) {
    choice.target.world_size = parse_count(world->second, "--knob tp_size");
    choice.target.knobs.erase(world);
  }
  choice.row = find_layout_row(rules, choice.target);
  return choice;
}

void require_backend(const Choice& choice) {
  if (choice.decision.backend) return;
  const std::string hint = moe_backend_hint(*choice.rules, choice.deployment.moe_backend);
  throw Error::unsupported(choice.decision.error_message)
      .reference_type(choice.decision.error_type)
      .hint(hint.empty() ? "mxfp4-repack explain shows every candidate and its reason" : hint);
}

const Layout* require_layout(const Choice& choice) {
  require_backend(choice);
  const std::string_view name = backend_name(choice.target.backend);
  if (choice.row == nullptr) {
    if (choice.target.arch.empty()) {
      throw Error::usage(
          fmt::format("the layout of {} differs between architectures: give --arch", name));
    }
    throw Error::unsupported(fmt::format(
        "{} has no layout for family {} on {} {} in {}", name, family_name(choice.target.family),
        platform_name(choice.target.platform), choice.target.arch, choice.rules->name));
  }
  if (choice.row->layout == nullptr) {
    throw Error::unsupported(std::string(choice.row->refusal))
        .reference_type(std::string(choice.row->refusal_type));
  }
  return choice.row->layout;
}

void require_rank(const DeploymentOptions& options, int64_t ranks) {
  if (!options.rank || (*options.rank >= 0 && *options.rank < ranks)) return;
  throw Error::usage(fmt::format("--rank {}: there are {} ranks", *options.rank, ranks));
}

std::vector<RankSlice> plan_ranks(const DeploymentOptions& options, const OpenInput& input,
                                  const Choice& choice) {
  SliceOptions slice;
  slice.parallel = choice.deployment.parallel;
  if (options.expert_placement == "round_robin") slice.placement = ExpertPlacement::kRoundRobin;
  slice.round = options.pad == "auto";
  slice.round_sizes = [&](LayerDims dims) {
    return round_up_sizes(*choice.rules, choice.target, dims);
  };
  if (make_question(*choice.rules, choice.deployment).uses_all2all) {
    slice.round_hidden = [&](int64_t hidden) {
      return round_up_all2all_hidden(*choice.rules, choice.deployment.parallel.all2all_backend,
                                     hidden);
    };
  }
  slice.backend = choice.target.backend;
  if (choice.rules->loader.strides_by_checkpoint) slice.generic_stride = GenericStride::kCheckpoint;
  if (input.config) slice.n_group = input.config->n_group;
  std::vector<RankSlice> ranks = naming(
      {input.path}, [&] { return slice_ranks(input.model, common_dims(input.model), slice); });
  require_rank(options, static_cast<int64_t>(ranks.size()));
  if (!options.rank) return ranks;
  return {ranks[static_cast<size_t>(*options.rank)]};
}

std::vector<std::string> known_defects(const Choice& choice, const ModelLayers& model,
                                       const RankSlice& rank) {
  return defect_notes(*choice.rules, {choice.target, rank.padded, model.order});
}

Manifest describe_conversion(const OpenInput& input, const Choice& choice, const Layout* layout) {
  Manifest manifest;
  manifest.tool_version = MXFP4_REPACK_VERSION;
  manifest.revision = choice.rules->name;
  manifest.vllm_commit = choice.rules->commit;
  manifest.layout = layout == nullptr ? kLoadedLayoutId : layout->id;
  if (layout != nullptr) manifest.kernel_library = layout->kernel_library;
  manifest.decision = choice.decision;
  manifest.target = choice.target;
  manifest.parallel = choice.deployment.parallel;
  manifest.style = style_name(input.model.style);
  manifest.loader = input.model.loader;
  manifest.order = input.model.order;
  manifest.scale_fill = input.model.scale_fill;
  manifest.bias_dtype = input.model.bias_dtype;
  manifest.source.kind = input.source->kind();
  for (const FileStatus& file : input.source->files()) {
    manifest.source.files.emplace_back(file.path.filename().string(), file.size);
  }
  manifest.warnings = input.model.warnings;
  return manifest;
}

}  // namespace mxfp4
