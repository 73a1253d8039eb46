// DeepGEMM's mega MoE kernel (vLLM's --moe-backend deep_gemm_mega_moe, capability 10.x): dispatch,
// both matrix products and combine in one kernel. Gate and up rows alternate in groups of eight, so
// that one tile of the product holds both sides of an activation; scales lie in the 128 x 4 tiles
// of the tensor cores, as in block_scale_swizzle.hpp, but the tiles of a column of tiles
// lie together.
//
// The shapes are the memory's; the engine views a scale tensor as [E, N, K/128] with strides
// (N*K/128, 1, N).
//
// Example, H = I = 256: w13's up row 9 is loaded row 265, i = 9, so it becomes row 25; its scale of
// column 5 goes to byte (1*4 + 0)*512 + 25*16 + 0*4 + 1 = 2449 of its expert.
//
// The permutation loses nothing: every byte of a scale passes, 0 and 255, too.
#include <fmt/format.h>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/slot_outputs.hpp"

namespace mxfp4 {
namespace {

constexpr const char* kMegaMoeId = "deepgemm/mega-moe";
constexpr int64_t kEight = 8;                            // rows of gate, then as many of up
constexpr int64_t kScaleTileRows = 128;                  // of a tile of scales
constexpr int64_t kTileSpan = 4;                         // its columns: one word
constexpr int64_t kScaleTileCodes = kTileSpan * kBlock;  // codes of a row that its scales cover

// Axes: g, i / 8, i % 8, bytes of a row.
Permute rows_by_eights(int64_t rows, int64_t row_bytes) {
  return {Unit::kByte, {2, rows / (2 * kEight), kEight, row_bytes}, {1, 0, 2, 3}};
}

Output mega_weight_output(const LoadedSpec& loaded, Slot slot) {
  const auto [rows, row_bytes] = loaded.expert(slot);
  Program program(rows * row_bytes);
  if (slot_is_w13(slot)) program.then(rows_by_eights(rows, row_bytes));
  TensorSpec spec = loaded.tensor(slot);
  spec.dtype = DType::kI8;
  return slot_output(loaded, slot, spec, std::move(program));
}

// Words of four scales; w13's rows are placed in the same step.
Permute scale_tiles(Slot slot, int64_t rows, int64_t words) {
  if (slot_is_w13(slot)) {
    // Rows: g, R/128, R%128/32, R%32/16, R%8; R%16/8 is g.
    return {Unit::kWord32, {2, rows / kScaleTileRows, 4, 2, kEight, words}, {5, 1, 3, 0, 4, 2}};
  }
  // Rows: r/128, r%128/32, r%32.
  return {Unit::kWord32, {rows / kScaleTileRows, 4, 32, words}, {3, 0, 2, 1}};
}

Output mega_scale_output(const LoadedSpec& loaded, Slot slot) {
  const auto [rows, columns] = loaded.expert(slot);
  const int64_t words = columns / kTileSpan;
  Program program(rows * columns);
  program.then(scale_tiles(slot, rows, words));
  const int64_t experts = loaded.dims.num_experts;
  Output output =
      slot_output(loaded, slot, {DType::kI32, {experts, words, rows}}, std::move(program));
  output.storage.storage_shape = {experts, rows, words};
  output.storage.storage_strides = {words * rows, 1, rows};
  return output;
}

std::vector<Output> mega_outputs(const LayoutInput& input) {
  const LoadedSpec& loaded = input.loaded;
  require_multiple(kMegaMoeId, "hidden size", loaded.dims.hidden_size, kScaleTileCodes);
  require_multiple(kMegaMoeId, "intermediate size", loaded.dims.intermediate_size, kScaleTileCodes);
  if (loaded.bias) {
    throw Error::unsupported(
        fmt::format("layout {}: the kernel adds no biases, and the input has some", kMegaMoeId));
  }
  return {mega_weight_output(loaded, Slot::kW13Weight), mega_weight_output(loaded, Slot::kW2Weight),
          mega_scale_output(loaded, Slot::kW13WeightScale),
          mega_scale_output(loaded, Slot::kW2WeightScale)};
}

}  // namespace

const Layout kDeepgemmMegaMoeLayout = {
    .id = kMegaMoeId,
    .outputs_doc =
        "w13_weight, w2_weight: I8 [E, N, C]\n"
        "w13_weight_scale, w2_weight_scale: I32 [E, S/4, N]",
    .formula =
        "w13 row g*I+i -> 16*(i/8) + 8*g + i%8\n"
        "scale (r,c): offset ((c/4)*(N/128) + r/128)*512 + (r%32)*16 + ((r%128)/32)*4 + c%4",
    .preconditions = "H % 128 == 0, I % 128 == 0; no biases",
    .source =
        "vLLM 0.33.0 fused_moe/deep_gemm_mega_moe.py (DeepGemmMegaMoEExperts: _load_weight, "
        "_pack_scale, _kernel_layout_shard); DeepGEMM 2.8.1 (transform_weights_for_mega_moe) "
        "before it",
    .outputs = mega_outputs,
};

}  // namespace mxfp4
