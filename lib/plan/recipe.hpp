// The recipe: everything that the bytes of one layer on one rank depend on, and nothing else. The
// oracle's half of the house makes recipes out of a deployment and a config; the repacker's half makes
// bytes out of a recipe and a checkpoint. Two conversions give the same bytes if their recipes are
// equal. A recipe names no engine, release or flag.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/layer.hpp"
#include "lib/layouts/output.hpp"
#include "lib/load/expert_layer.hpp"
#include "lib/load/slice.hpp"

namespace mxfp4 {

struct Recipe {
  WeightFormat weights = kMxfp4Format;
  std::string layout;  // id; "loaded" where a blob stops at the loaded layout
  std::map<std::string, std::string> parameters;  // what the layout reads beside sizes
  std::vector<int64_t> experts;                   // global ids, in the order of the rank's slots
  int64_t hidden_size = 0;                        // of the checkpoint
  int64_t intermediate_begin = 0;                 // the rank's rows of the checkpoint's I
  int64_t intermediate_end = 0;                   // [begin, end)
  int64_t padded_hidden_size = 0;                 // of the loaded layer
  int64_t padded_intermediate_size = 0;           // of the loaded layer
  W13Order order = W13Order::kInterleaved;        // of the loaded layer's w13 rows
  std::optional<std::byte> hidden_fill;           // padding of scales in H; empty: H is not padded
  std::optional<std::byte> intermediate_fill;     // the same in I
  std::optional<DType> bias;                      // of both biases in the loaded layer
  bool w2_bias = false;  // false: w2's biases are absent, or zero on this rank
  bool input_scales = false;
  friend bool operator==(const Recipe&, const Recipe&) = default;

  [[nodiscard]] int64_t num_experts() const { return std::ssize(experts); }
  [[nodiscard]] int64_t intermediate_size() const { return intermediate_end - intermediate_begin; }
  // The loaded layer, padded.
  [[nodiscard]] LoadedSpec loaded() const {
    return {{num_experts(), padded_hidden_size, padded_intermediate_size}, bias, input_scales};
  }
};

// Of one layer on one rank. `layout` null: stops at the loaded layout.
[[nodiscard]] Recipe recipe_of(const ModelLayers& model, const ExpertLayer& layer,
                               const RankSlice& rank, const Layout* layout,
                               const LayoutParameters& parameters);

// The canonical text: "NAME: VALUE" a line, in a fixed order. Equal recipes have equal texts.
[[nodiscard]] std::string recipe_text(const Recipe& recipe);

// One part of two recipes that differs, in words: "layout", "triton/hopper", "triton/hopper-s4".
struct RecipeDifference {
  std::string what;
  std::string here;
  std::string there;
  friend bool operator==(const RecipeDifference&, const RecipeDifference&) = default;
};

// The first part that differs; empty for equal recipes.
[[nodiscard]] std::optional<RecipeDifference> recipe_difference(const Recipe& here,
                                                                const Recipe& there);

}  // namespace mxfp4
