#include "formats/decision/open_checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/config/config_json.hpp"
#include "formats/source/source.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/load/describe_published.hpp"
#include "lib/load/find_layers.hpp"
#include "lib/load/loaded_style.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/model_classes.hpp"

namespace mxfp4 {
namespace {

// Sets what depends on the method class that loads the checkpoint, which need not be the class
// after which the style is named.
void apply_caller(ModelLayers& model, const CallerRow* caller, std::optional<Family> given) {
  if (caller == nullptr) return;
  model.family = given.value_or(caller->family);
  model.scale_fill = caller->scale_fill.value_or(model.scale_fill);
}

// Takes over what a blob knows of its checkpoint. Throws Error::unsupported if the release loads
// what the blob has not, because the release that it was made for does not load it.
void take_over(ModelLayers& model, const SourceOrigin& origin, const RuleSet& rules) {
  model.left_out = origin.left_out;
  for (ExpertLayer& layer : model.layers) {
    const auto sample = origin.samples.find(layer.prefix);
    if (layer.published && sample != origin.samples.end()) layer.published->sample = sample->second;
  }
  if (!model.left_out.contains("bias") || !rules.loader.loads_biases) return;
  throw Error::unsupported(
      fmt::format("{} loads the experts' biases, which the blob does not have: the "
                  "release that it was made for does not load them",
                  rules.name))
      .hint("convert the checkpoint that it was made from");
}

// Words about a config whose model class no release has; empty where one has it.
std::string unknown_class(const ModelConfig& config) {
  const auto known = [](const std::string& name) { return !known_architecture(name).empty(); };
  if (config.architectures.empty() || std::ranges::any_of(config.architectures, known)) return {};
  return fmt::format("{} is a model class that this program does not know",
                     shown(config.architectures.front()));
}

ModelLayers find_layers(const OpenedCheckpoint& checkpoint, const CheckpointOptions& options,
                        const RuleSet& rules) {
  FindOptions find;
  find.style = options.style;
  find.family = options.family;
  find.generic_biases = rules.loader.loads_biases;
  find.encodes_scales = rules.loader.encodes_scales;
  find.unfilled_biases = rules.loader.creates_biases;
  find.attributes = checkpoint.source->attributes();
  const SourceOrigin* origin = checkpoint.source->origin();
  find.partial = options.config_text.has_value();
  find.experts_only = origin != nullptr;
  if (origin != nullptr && !find.style && !checkpoint.config) {
    find.style = style_from_name(origin->style);
  }
  std::vector<NamedTensor> tensors;
  for (const SourceTensor& tensor : checkpoint.source->tensors()) {
    tensors.push_back({tensor.name, tensor.spec, tensor.file});
  }
  const ModelConfig* config = checkpoint.config ? &*checkpoint.config : nullptr;
  try {
    return in_file(checkpoint.path.string(), [&] {
      ModelLayers model = find_expert_layers(tensors, config, find);
      describe_published(model, tensors);
      if (origin != nullptr) take_over(model, *origin, rules);
      if (model.layers.empty()) {
        throw Error::input(
            fmt::format("no MXFP4 expert layers among its {} tensors", tensors.size()));
      }
      const std::vector<std::string>& warnings = checkpoint.source->warnings();
      model.warnings.insert(model.warnings.end(), warnings.begin(), warnings.end());
      return model;
    });
  } catch (const Error& error) {
    const std::string unknown = config == nullptr ? "" : unknown_class(*config);
    if (unknown.empty() || !error.hint_text().empty()) throw;
    throw Error(error).hint(unknown);
  }
}

// The path of the config.json that the source found, for messages.
std::filesystem::path config_path(const Source& source, const std::filesystem::path& input) {
  for (const FileStatus& file : source.files()) {
    if (file.path.filename() == kConfigName) return file.path;
  }
  return input / kConfigName;
}

// Keeps the layers with these numbers. Throws Error::usage when one does not exist.
void select_layers(ModelLayers& model, const std::set<int64_t>& layers) {
  if (layers.empty()) return;
  for (const int64_t index : layers) {
    if (std::ranges::find(model.layers, index, &ExpertLayer::index) == model.layers.end()) {
      throw Error::usage(fmt::format("there is no MoE layer {}; the MoE layers are {} to {}", index,
                                     model.layers.front().index, model.layers.back().index))
          .at_key("--layers");
    }
  }
  std::erase_if(model.layers,
                [&](const ExpertLayer& layer) { return !layers.contains(layer.index); });
}

}  // namespace

OpenedCheckpoint open_checkpoint(std::shared_ptr<Source> source, const CheckpointOptions& options,
                                 const RuleSet& rules) {
  OpenedCheckpoint checkpoint;
  checkpoint.path = options.path;
  checkpoint.source = std::move(source);
  checkpoint.imagined = checkpoint.source->kind() == kConfigKind;
  checkpoint.config_text =
      options.config_text ? options.config_text : checkpoint.source->config_json();
  if (checkpoint.config_text) {
    const std::filesystem::path file = options.config_text
                                           ? options.config_path
                                           : config_path(*checkpoint.source, checkpoint.path);
    checkpoint.config = parse_model_config(*checkpoint.config_text, file.string());
  }
  checkpoint.model = find_layers(checkpoint, options, rules);
  if (checkpoint.config && checkpoint.model.follows_checkpoint()) {
    for (std::string& warning : model_class_warnings(*checkpoint.config_text)) {
      checkpoint.model.warnings.push_back(std::move(warning));
    }
    // The rule for the experts may differ from the one that holds for the rest of the model.
    if (checkpoint.config->quantization) {
      checkpoint.config->quantization->activation = checkpoint.model.activation;
    }
    apply_caller(checkpoint.model, find_caller(rules, *checkpoint.config), options.family);
  }
  const size_t all_layers = checkpoint.model.layers.size();
  select_layers(checkpoint.model, options.layers);
  const SourceOrigin* blob = checkpoint.source->origin();
  checkpoint.layers_chosen = !options.layers.empty() || (blob != nullptr && !blob->all_layers);
  checkpoint.layers_left_out = all_layers - checkpoint.model.layers.size();
  return checkpoint;
}

LayerDims common_dims(const ModelLayers& model) {
  const ExpertLayer& first = model.layers.front();
  for (const ExpertLayer& layer : model.layers) {
    if (layer.dims.hidden_size == first.dims.hidden_size &&
        layer.dims.intermediate_size == first.dims.intermediate_size) {
      continue;
    }
    throw Error::input(fmt::format("H {}, I {}, but {} has {}, {}", layer.dims.hidden_size,
                                   layer.dims.intermediate_size, first.prefix,
                                   first.dims.hidden_size, first.dims.intermediate_size))
        .at_key(layer.prefix)
        .hint("convert layers of different sizes separately, with --layers");
  }
  return {model.num_experts, first.dims.hidden_size, first.dims.intermediate_size};
}

}  // namespace mxfp4
