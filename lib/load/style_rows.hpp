// The naming styles of checkpoints as a table: how a tensor name is taken apart and what the
// style's loader does (vLLM a2c8fc6657, models/gpt_oss.py, models/deepseek_v4.py,
// layers/quantization/{mxfp4,quark,compressed_tensors}). Names are parsed by hand: a model has 140
// thousand names.
//
//   <module>.experts.<expert>.<projection><field>   one tensor an expert
//   <module>.experts.<projection><field>            stacked, experts in dimension 0
//
// A new style is a new row; `loaded` inputs are not of this form and live in loaded_style.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/core/dtype.hpp"
#include "lib/load/expert_layer.hpp"

namespace mxfp4 {

enum class Projection : uint8_t { kGate, kUp, kDown, kGateUp };
inline constexpr size_t kProjections = 4;
enum class Field : uint8_t { kCodes, kScales, kBias, kInputScale };
inline constexpr size_t kFields = 4;

struct ProjectionWord {
  std::string_view word;
  Projection projection;
};

// How a style's loader treats biases.
enum class BiasRule : uint8_t { kRequired, kIgnored, kNeverFilled };

// The models of a quantization method that have their experts in a style.
// kMxfp4InFp8: models whose routed experts have a method of their own
// (Quantization::routed_experts). kInkling: is_inkling() says so. kNotGptOss: all but gpt-oss
// and Inkling.
enum class ModelRule : uint8_t { kAny, kGptOss, kNotGptOss, kMxfp4InFp8, kInkling };

struct StyleRow {
  Style style;
  std::string_view marker;  // ends the module path: ".experts." or, in gpt-oss's own form, ".mlp."
  bool stacked;
  std::span<const ProjectionWord> projections;
  std::array<std::string_view, kFields> suffixes;  // by Field, with what joins them; empty: none
  std::span<const std::string_view> methods;       // quant_method, as written in a config
  ModelRule model;
  BiasRule bias;
  bool every_layer;  // every layer of the model has experts
  // Traits of the loader, as in ModelLayers.
  Loader loader;
  Family family;
  W13Order order;
  std::byte scale_fill;
  DType bias_dtype;
  // What becomes of scales that are not bytes. A loader copies numbers into bytes, which loses
  // F8_E8M0, unless it takes its bits; the MXFP4 method encodes floats and takes these bits
  // (quantization/mxfp4.py, _encode_mxfp4_weight_scale) at releases with
  // FindOptions::encodes_scales.
  bool takes_exponents;
  bool encodes;
  // The engine's method class after which the style is named. It counts where no config.json says
  // which class serves the tensors.
  std::string_view method;
};

[[nodiscard]] std::span<const StyleRow> style_rows();

// The types of scales that a style's loader does not lose.
[[nodiscard]] std::span<const DType> scale_types(const StyleRow& row, bool encodes_scales);

// Whether the model is one of Inkling's, by its model_type.
[[nodiscard]] bool is_inkling(const ModelConfig& config);

// The first row of a style with this loader; null if there is none.
[[nodiscard]] const StyleRow* find_style_row(Style style, Loader loader);

// Whether a model of this config may have its experts in the style, by its quantization and type.
[[nodiscard]] bool row_allowed(const StyleRow& row, const ModelConfig& config);

// A tensor name taken apart. Views point into the name.
struct ExpertTensorName {
  std::string_view module;  // "model.layers.3.mlp.experts"
  int64_t layer = 0;
  bool draft = false;   // of a multi-token prediction module: numbered after the model's layers
  int64_t expert = -1;  // -1: stacked
  Projection projection = Projection::kGate;
  Field field = Field::kCodes;
  std::string_view word;  // the projection's name: "w1", "gate_proj"
};

// Empty when the name is not one of the style's expert tensors.
[[nodiscard]] std::optional<ExpertTensorName> parse_expert_name(const StyleRow& row,
                                                                std::string_view name);
// The inverse; `word` is the projection's name.
[[nodiscard]] std::string expert_tensor_name(const StyleRow& row, std::string_view module,
                                             int64_t expert, std::string_view word, Field field);

// The path of a layer's experts as models of the style usually have it: "model.layers.3.mlp.experts";
// in gpt-oss's original names the path of the block itself, "block.3.mlp".
[[nodiscard]] std::string experts_path(Style style, int64_t layer);

// The engine's path of a layer's experts where the checkpoint has another; empty if both are the
// same.
[[nodiscard]] std::string engine_path(Style style, int64_t layer);

// A non-negative decimal number of at most nine digits, the whole of `text`.
[[nodiscard]] std::optional<int64_t> parse_index(std::string_view text);

}  // namespace mxfp4
