#include "lib/load/imagined.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lib/core/checked.hpp"
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
  throw Error::input(size ? "0" : "missing; without weights it is not known")
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

// The path of a layer's experts, in front of ".experts" or ".mlp".
std::string module_of(const ModelConfig& config, const StyleRow& row, int64_t layer) {
  if (row.style == Style::kGptOssOriginal) return fmt::format("block.{}.mlp", layer);
  if (row.style == Style::kDeepseekV4) return fmt::format("layers.{}.ffn.experts", layer);
  if (config.model_type.starts_with("kimi_k3")) {
    return fmt::format("language_model.model.layers.{}.block_sparse_moe.experts", layer);
  }
  return fmt::format("model.layers.{}.mlp.experts", layer);
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
        if (row_.stacked) shape.insert(shape.begin(), sizes.experts);
        out_.push_back({expert_tensor_name(row_, module, expert, word.word, field),
                        {dtype, Shape(shape)},
                        config_.file});
      };
      if (row_.stacked) {
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

}  // namespace

std::vector<NamedTensor> imagine_tensors(const ModelConfig& config) {
  if (!config.quantization && !config.original_gpt_oss) {
    throw Error::input("missing").at_key("quantization_config").in_file(config.file);
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
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    if (!config_has_experts(config, layer).value_or(true)) continue;
    const std::string module = module_of(config, row, layer);
    const ModuleQuantization* rule =
        config.quantization
            ? find_rule(*config.quantization, module,
                        fmt::format("{}.0.{}", module, row.projections.front().word))
            : nullptr;
    if (rule != nullptr && !rule->refusal.empty()) continue;
    const std::string activation = rule != nullptr       ? rule->activation
                                   : config.quantization ? config.quantization->activation
                                                         : "";
    Imagination(config, row, activation == "fp8_per_tensor_static", out).add_layer(module, sizes);
  }
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
