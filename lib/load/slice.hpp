// Which part of each expert a rank holds, and how its loaded tensors are put together. This is the
// loader's own arithmetic (vLLM a2c8fc6657, fused_moe/layer.py and models/gpt_oss.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "lib/core/deployment.hpp"
#include "lib/load/expert_layer.hpp"

namespace mxfp4 {

enum class ExpertPlacement : uint8_t { kLinear, kRoundRobin };

// Which rank it is.
struct RankNumbers {
  int64_t rank = 0;
  int64_t num_ranks = 1;
  int64_t tp_rank = 0, tp_size = 1, ep_rank = 0, ep_size = 1;
  friend bool operator==(const RankNumbers&, const RankNumbers&) = default;
};

// One rank's share of every layer.
struct RankSlice : RankNumbers {
  // The experts in a layer that has the model's number of them: global ids, ascending; redundant
  // experts go on from 0 again behind the last one.
  std::vector<int64_t> experts;
  // The same for the layers with other numbers of experts, by that number.
  std::map<int64_t, std::vector<int64_t>> other_experts;
  int64_t begin = 0, end = 0;  // range of the intermediate dimension
  LayerDims padded;            // `experts`, padded H, padded I of this rank
  bool w2_bias = true;         // false: the rank's w2_bias is zero
  // Padding of scales, where the path says another than ModelLayers::scale_fill: of the tail of H,
  // and of the tail of I, where both meet too.
  std::optional<std::byte> hidden_fill{}, intermediate_fill{};

  // The rank's experts of a layer that has `num_experts` in all.
  [[nodiscard]] const std::vector<int64_t>& experts_of(int64_t num_experts) const;
};

// The padding of scales that a rank's slice has.
struct ScaleFill {
  std::byte hidden{0}, intermediate{0};
};
[[nodiscard]] ScaleFill scale_fill_of(const ModelLayers& model, const RankSlice& slice);

// Rows [row, row + rows), columns [column, column + columns) of a loaded matrix; columns
// count bytes.
struct ByteRect {
  int64_t row = 0, rows = 0, column = 0, columns = 0;
};

// Copies `rows` rows of the checkpoint's matrix, every `step`-th one from `from_row` on, columns
// [from_col, from_col + col_bytes), to (to_row, 0) of the loaded one. Columns count bytes of the
// stored matrix.
struct CopyRect {
  int64_t from_row = 0, from_col = 0, rows = 0, col_bytes = 0, to_row = 0;
  int64_t step = 1;
};

// How one expert's stored matrix becomes its loaded one. Immutable, thread-safe.
struct Assembly {
  ExpertMatrix stored;
  ExpertMatrix loaded;
  std::byte fill{0};
  std::vector<ByteRect> tails;  // padding of another byte
  std::byte tail_fill{0};
  std::vector<CopyRect> rects;  // in stored bytes, from the top of `loaded` down
  DType from{}, to{};           // element conversion of biases, after the copy

  // True when loaded == stored byte for byte, so that no copy is needed.
  [[nodiscard]] bool identity() const;
  // True when loaded is stored with `fill` behind each row and below the last one.
  [[nodiscard]] bool pads_only() const;
  // Writes every byte of `out` (loaded.bytes()) from `in` (stored.bytes()).
  void forward(ConstBytes in, MutableBytes out) const;
  // The inverse: writes to `out` (stored.bytes()) what forward() took from it, from `in`
  // (loaded.bytes()), and leaves the rest of `out` as it is. Exact where forward() was.
  void backward(ConstBytes in, MutableBytes out) const;

 private:
  // Whether each stored row lies whole at the begin of the loaded row of its number.
  [[nodiscard]] bool keeps_rows() const;
};

// Rounds the sizes of one rank: given unpadded H and I per rank, the sizes the backend wants.
using RoundSizes = std::function<LayerDims(LayerDims)>;

// The stride of the generic loader's slices of the intermediate dimension: the padded size of a
// rank, or the checkpoint's I / tp_size (vLLM pull request 42595).
enum class GenericStride : uint8_t { kPadded, kCheckpoint };

struct SliceOptions {
  ParallelConfig parallel;
  ExpertPlacement placement = ExpertPlacement::kLinear;
  bool rocm = false;       // Inkling's loader pads there and takes scales of two dimensions
  bool round = true;       // --pad auto; false: neither of the next two is asked
  RoundSizes round_sizes;  // the backend's rule; empty: the method class rounds nothing
  std::function<int64_t(int64_t)> round_hidden;  // the all-to-all kernel's rule on H, asked first
  // EPLB's experts beyond the model's own: slot p of all ranks together holds expert p % E.
  int64_t redundant_experts = 0;
  bool divides_by_all_ranks = true;  // I of gpt-oss, with expert parallelism too
  bool even_experts = false;         // every rank must hold as many as any other
  // The fewest rows of I / tp_size, before they are divided among other ranks and rounded: what is
  // missing is padding. 0: no such rule.
  int64_t least_slice = 0;
  bool least_slice_with_experts = false;  // the rule holds with expert parallelism, too
  bool round_robin = true;  // the deployment takes round-robin placement; else it becomes linear
  std::optional<int64_t> n_group;  // of the model: round-robin needs more than one expert group
  GenericStride generic_stride = GenericStride::kPadded;
};

// Every rank's slice; without expert parallelism rank r is TP rank r of tp * pcp * dp, with it EP
// rank r. `dims` are the model's; layers with another number of experts are divided apart. Throws
// Error::unsupported for what the reference cannot load or gets wrong: ranks that do not divide I,
// more EP ranks than experts, shards of partial scale blocks, uneven expert parallelism of gpt-oss,
// expert parallelism of its per-expert form, padding of stacked tensors under Quark. Error::usage
// for sizes below 1.
[[nodiscard]] std::vector<RankSlice> slice_ranks(const ModelLayers& model, const LayerDims& dims,
                                                 const SliceOptions& options);

// The assembly of `slot` on a rank. Throws Error::internal when `slice` is not one of the layer's.
[[nodiscard]] Assembly make_assembly(const ModelLayers& model, const ExpertLayer& layer, Slot slot,
                                     const RankSlice& slice);

}  // namespace mxfp4
