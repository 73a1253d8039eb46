// The tensors of one MoE layer by expert, projection and field. An ExpertLayer is built from them
// when none is missing, each has a legal dtype, and their shapes agree.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/model_config.hpp"
#include "lib/load/expert_layer.hpp"
#include "lib/load/style_rows.hpp"

namespace mxfp4 {

// Indices into the list of tensors. `tensors` and `row` outlive the table.
class LayerTable {
 public:
  LayerTable(const std::vector<NamedTensor>& tensors, const StyleRow& row,
             const ExpertTensorName& first, bool encodes_scales);

  void add(size_t tensor, const ExpertTensorName& name);

  // The tensors of a complete layer.
  struct Wanted {
    std::optional<int64_t> num_experts;  // of the config; empty: as many as there are
    bool input_scales = false;
    bool biases = false;          // where there are some, unless the style requires them
    bool unfilled_biases = true;  // of zeros, in a style whose biases are never filled
  };
  // Sets everything but index and engine_prefix. Throws Error::input naming file and tensor.
  [[nodiscard]] ExpertLayer build(const Wanted& wanted);

  // Whether the layer's experts are plain weights or quantized in another way: neither codes nor
  // scales of a type that MXFP4 has.
  [[nodiscard]] bool not_mxfp4() const;
  // Whether its scales have two dimensions though it is stacked.
  [[nodiscard]] bool flat_scales() const;
  // The indices of its tensors.
  [[nodiscard]] std::vector<size_t> members() const;

  [[nodiscard]] const std::string& module() const { return module_; }
  [[nodiscard]] int64_t layer() const { return layer_; }
  [[nodiscard]] bool draft() const { return draft_; }
  // The tensor that the sizes were read from, for messages after build.
  [[nodiscard]] const NamedTensor& sizes_from() const;

 private:
  // Any tensor of the layer, for messages about others.
  [[nodiscard]] const NamedTensor& witness() const { return (*tensors_)[entries_.front().tensor]; }

  struct Sizes {
    LayerDims dims;
    int64_t w13_rows;  // of one tensor
  };
  struct Entry {
    int64_t expert;
    Projection projection;
    Field field;
    size_t tensor;
  };
  // The types that a field's tensors may have, and what they are called.
  struct FieldRule {
    std::string_view what;
    std::span<const DType> dtypes;
  };
  [[nodiscard]] FieldRule rule(Field field) const;
  void check_dtype(const NamedTensor& tensor, Field field) const;
  void arrange();
  // Throws Error::input if no expert has a gate, or none an up projection.
  void require_gated() const;
  [[nodiscard]] size_t find(int64_t expert, Projection projection, Field field) const;
  [[nodiscard]] size_t require(int64_t expert, Projection projection, Field field) const;
  [[nodiscard]] int64_t count_experts(const Wanted& wanted) const;
  [[nodiscard]] Sizes read_sizes(int64_t experts) const;
  void check_tensor(size_t tensor, Projection projection, Field field, const Sizes& sizes) const;
  [[nodiscard]] SlotSource gather(std::span<const Projection> parts, Field field,
                                  const Sizes& sizes) const;
  [[nodiscard]] SlotSource gather_input_scales(std::span<const Projection> parts,
                                               const Sizes& sizes) const;
  [[nodiscard]] bool fused() const;

  const std::vector<NamedTensor>* tensors_;
  const StyleRow* row_;
  bool encodes_scales_;  // as FindOptions has it
  std::string module_;
  int64_t layer_;
  bool draft_;
  bool numbered_words_;  // projections are called w1, w2, w3
  std::vector<Entry> entries_;
  std::vector<size_t> cells_;  // [expert][projection][field]
};

// The layer's number in the engine, where a draft's follow the model's own. Throws Error::input
// where that needs a config's num_hidden_layers, and there is none.
[[nodiscard]] int64_t layer_index(const LayerTable& table, const ModelConfig* config);

}  // namespace mxfp4
