#include "lib/load/imagined.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lib/core/checked.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/load/config_check.hpp"
#include "lib/load/module_rules.hpp"
#include "lib/load/style_rows.hpp"

namespace mxfp4 {
namespace {

struct Sizes {
  int64_t layers, experts, hidden, intermediate;
};

int64_t require(const ModelConfig& config, std::optional<int64_t> size, std::string_view key) {
  if (size && *size > 0) return *size;
  // A key that was found, so that it is not the usual one, and has no size lists several: for two
  // kinds of experts, or for layers.
  const ModelConfig usual;
  const bool found = key == config.intermediate_size_key
                         ? key != usual.intermediate_size_key
                         : key == config.num_experts_key && key != usual.num_experts_key;
  const bool several = !size && found;
  throw Error::input(size      ? "0"
                     : several ? "a list of several sizes; only the weights say which are whose"
                               : "missing; without weights it is not known")
      .at_key(key)
      .in_file(config.file);
}

const StyleRow& row_of(const ModelConfig& config) {
  for (const StyleRow& row : style_rows()) {
    const bool original = row.style == Style::kGptOssOriginal;
    if (original == config.original_gpt_oss && row_allowed(row, config)) return row;
  }
  throw Error::input(fmt::format("no style of MXFP4 experts for model_type {}", config.model_type))
      .in_file(config.file);
}

bool has_experts(const ModelConfig& config, int64_t layer) {
  if (config.moe_layers)
    return std::ranges::find(*config.moe_layers, layer) != config.moe_layers->end();
  return config_has_experts(config, layer).value_or(true);
}

// Whether Quark quantized the shared experts too, which the engine may then put behind the routed
// ones.
bool has_mxfp4_shared_experts(const ModelConfig& config) {
  return config.num_shared_experts > 0 && config.quantization &&
         config.quantization->name == "quark" && !config.quantization->leaves_shared_experts;
}

// Appends the tensors of one module.
class Imagination {
 public:
  Imagination(const ModelConfig& config, const StyleRow& row, bool input_scales,
              std::vector<NamedTensor>& out)
      : config_(config), row_(row), input_scales_(input_scales), out_(out) {}

  void add_layer(const std::string& module, const Sizes& sizes) {
    if (row_.stacked) {
      add_projections(module, 0, sizes);
    } else {
      for (int64_t e = 0; e < sizes.experts; ++e) add_projections(module, e, sizes);
    }
  }

 private:
  void add_projections(const std::string& module, int64_t expert, const Sizes& sizes) {
    // A row's further words are other names of the same projections.
    bool seen[kProjections] = {};
    for (const ProjectionWord& word : row_.projections) {
      if (std::exchange(seen[static_cast<size_t>(word.projection)], true)) continue;
      const bool down = word.projection == Projection::kDown;
      const int64_t halves = word.projection == Projection::kGateUp ? 2 : 1;
      const int64_t rows = down ? sizes.hidden : checked_mul(halves, sizes.intermediate);
      const int64_t columns = down ? sizes.intermediate : sizes.hidden;
      const auto add = [&](Field field, DType dtype, std::vector<int64_t> shape) {
        const bool flat = row_.loader == Loader::kInklingStacked && field == Field::kScales;
        if (flat) shape.front() = checked_mul(shape.front(), sizes.experts);
        if (row_.stacked && !flat) shape.insert(shape.begin(), sizes.experts);
        out_.push_back({expert_tensor_name(row_, module, expert, word.word, field),
                        {dtype, Shape(shape)},
                        config_.file});
      };
      if (row_.stacked && row_.loader != Loader::kInklingStacked) {
        add(Field::kCodes, DType::kU8, {rows, columns / kBlock, kBlock / kCodesPerByte});
      } else {
        add(Field::kCodes, DType::kU8, {rows, columns / kCodesPerByte});
      }
      add(Field::kScales, DType::kU8, {rows, columns / kBlock});
      if (row_.bias == BiasRule::kRequired) add(Field::kBias, DType::kBF16, {rows});
      if (input_scales_) add(Field::kInputScale, DType::kF32, {1});
    }
  }

  const ModelConfig& config_;
  const StyleRow& row_;
  bool input_scales_;
  std::vector<NamedTensor>& out_;
};

// Appends what shows a layer: its experts, or that it has none, or others. Says why its experts are
// not MXFP4, with an empty text if they are; nothing of a layer without experts.
std::optional<std::string> add_model_layer(const ModelConfig& config, const StyleRow& row,
                                           const Sizes& sizes, int64_t layer,
                                           std::vector<NamedTensor>& out) {
  const auto add = [&](const std::string& name, DType dtype, const Shape& shape) {
    out.push_back({name, {dtype, shape}, config.file});
  };
  add(fmt::format("model.layers.{}.input_layernorm.weight", layer), DType::kBF16,
      Shape{sizes.hidden});
  if (!has_experts(config, layer)) return std::nullopt;
  const std::string module = experts_path(row.style, layer);
  std::string activation;
  if (config.quantization) {
    const ModuleQuantization* rule = find_rule(*config.quantization, module);
    if (rule != nullptr && !rule->refusal.empty()) {
      add(expert_tensor_name(row, module, 0, row.projections.front().word, Field::kCodes),
          DType::kBF16, Shape{sizes.intermediate, sizes.hidden});
      return rule->refusal;
    }
    activation = rule != nullptr ? rule->activation : config.quantization->activation;
  }
  Imagination(config, row, activation == "fp8_per_tensor_static", out).add_layer(module, sizes);
  if (has_mxfp4_shared_experts(config)) {
    add(fmt::format("model.layers.{}.mlp.shared_experts.gate_proj.weight", layer), DType::kU8,
        Shape{sizes.intermediate, sizes.hidden / kCodesPerByte});
  }
  return "";
}

}  // namespace

std::vector<NamedTensor> imagine_tensors(const ModelConfig& config) {
  if (!config.quantization && !config.original_gpt_oss) {
    throw Error::input("missing").at_key("quantization_config").in_file(config.file);
  }
  if (config.ungated_experts) {
    throw Error::input("its experts are ungated; this program repacks gated experts only")
        .at_key("mlp_hidden_act")
        .in_file(config.file);
  }
  const StyleRow& row = row_of(config);
  Sizes sizes{require(config, config.num_hidden_layers, "num_hidden_layers"),
              require(config, config.num_experts, config.num_experts_key),
              require(config, config.hidden_size, config.hidden_size_key),
              require(config, config.intermediate_size, config.intermediate_size_key)};
  constexpr int64_t kMost = 1 << 20;  // tensors: more than any model has
  if (checked_mul(sizes.layers, sizes.experts) > kMost) {
    throw Error::input(fmt::format("{} layers of {} experts: more than any model has", sizes.layers,
                                   sizes.experts))
        .in_file(config.file);
  }
  std::vector<NamedTensor> out;
  bool any = false;
  std::string refusal = "no layer has experts";
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    const auto said = add_model_layer(config, row, sizes, layer, out);
    any = any || (said && said->empty());
    if (said) refusal = *said;
  }
  if (!any) throw Error::input(refusal).in_file(config.file);
  if (row.style != Style::kDeepseekV4) return out;
  sizes.experts = experts_stated(config, true).value_or(sizes.experts);
  const int64_t stages = config.draft_stages.value_or(config.num_nextn_predict_layers.value_or(0));
  if (checked_mul(stages, sizes.experts) > kMost) {
    throw Error::input(fmt::format("{} draft stages", stages)).in_file(config.file);
  }
  for (int64_t stage = 0; stage < stages; ++stage) {
    Imagination(config, row, false, out).add_layer(fmt::format("mtp.{}.ffn.experts", stage), sizes);
  }
  return out;
}

}  // namespace mxfp4
