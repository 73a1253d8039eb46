// AITER_MXFP4_BF16, w13 loaded as gate and up halves: four layouts. They differ in whether w13's
// halves are mixed in blocks of 16 rows, and in which scales are one matrix of all experts' rows,
// padded at its end. Older AITER leaves that padding uninitialised; newer AITER writes 0x7F, and so
// does this program.
//
// Example: I = 128, mixed: row 128 + 3 (g = 1, i = 3) goes to 0 + 16 + 3 = 19.
#include <fmt/format.h>

#include "lib/core/checked.hpp"
#include "lib/core/dtype.hpp"
#include "lib/layouts/aiter_common.hpp"
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/slot_outputs.hpp"

namespace mxfp4 {
namespace {

constexpr std::byte kOne{0x7F};
constexpr int64_t kScaleColumns = 8;
constexpr int64_t kScaleRows = 256;

enum class HalfRows : uint8_t { kKept, kMixed };
// Which scales are padded and tiled as one matrix of all experts.
enum class Joined : uint8_t { kNone, kW2, kBoth };

Output aiter_bf16_weight_output(const LoadedSpec& loaded, Slot slot, HalfRows rows) {
  Output output = aiter_weight_output(loaded, slot, RowPairs::kKept);
  if (rows == HalfRows::kKept) return output;
  const ExpertMatrix expert = loaded.expert(slot);
  output.program = Program(expert.bytes());
  output.program.then(
      Permute{Unit::kByte, {2, expert.rows / 32, 16, expert.row_bytes / 16, 16}, {1, 0, 3, 2, 4}});
  return output;
}

// Rows x columns scales, padded, through S; with mixed halves through H before.
Program scale_program(int64_t rows, int64_t columns, int64_t padded_rows, HalfRows halves) {
  const int64_t padded = round_up(columns, kScaleColumns);
  Program program(checked_mul(rows, columns));
  if (padded != columns || padded_rows != rows) {
    program.then(PadMatrix{rows, columns, padded_rows, padded, kOne});
  }
  if (halves == HalfRows::kMixed) {
    program.then(
        Permute{Unit::kByte, {2, padded_rows / 32, 16, padded / 8, 2, 4}, {1, 3, 5, 2, 4, 0}});
  } else {
    program.then(cdna4_scale_tiles(padded_rows, padded, RowPairs::kKept));
  }
  return program;
}

Output aiter_bf16_scale_output(const LoadedSpec& loaded, Slot slot, HalfRows halves) {
  const auto [rows, columns] = loaded.expert(slot);
  const Shape shape{checked_mul(loaded.dims.num_experts, rows), round_up(columns, kScaleColumns)};
  return slot_output(loaded, slot, {DType::kU8, shape}, scale_program(rows, columns, rows, halves));
}

// All experts' rows as one matrix. Without padding rows the map is the same expert by expert.
Output joined_scale_output(const LoadedSpec& loaded, Slot slot) {
  const auto [rows, columns] = loaded.expert(slot);
  const int64_t all_rows = checked_mul(loaded.dims.num_experts, rows);
  const int64_t padded_rows = round_up(all_rows, kScaleRows);
  if (padded_rows == all_rows) return aiter_bf16_scale_output(loaded, slot, HalfRows::kKept);
  Output output;
  output.name = slot_name(slot);
  output.slot = slot;
  output.spec = {DType::kU8, {padded_rows, round_up(columns, kScaleColumns)}};
  output.program = scale_program(all_rows, columns, padded_rows, HalfRows::kKept);
  output.experts_per_granule = loaded.dims.num_experts;
  return output;
}

std::vector<Output> aiter_bf16_outputs(std::string_view id, const LoadedSpec& loaded, HalfRows w13,
                                       Joined joined) {
  // AITER's tiles of weights take 64 codes of a row; mixed halves need whole tiles of scales, too.
  require_multiple(id, "hidden size", loaded.dims.hidden_size, joined == Joined::kBoth ? 64 : 128);
  require_multiple(id, "intermediate size", loaded.dims.intermediate_size, 128);
  std::vector<Output> result = {
      aiter_bf16_weight_output(loaded, Slot::kW13Weight, w13),
      aiter_bf16_weight_output(loaded, Slot::kW2Weight, HalfRows::kKept),
      joined == Joined::kBoth ? joined_scale_output(loaded, Slot::kW13WeightScale)
                              : aiter_bf16_scale_output(loaded, Slot::kW13WeightScale, w13),
      joined == Joined::kNone
          ? aiter_bf16_scale_output(loaded, Slot::kW2WeightScale, HalfRows::kKept)
          : joined_scale_output(loaded, Slot::kW2WeightScale),
  };
  if (joined == Joined::kW2) {
    for (Output& output : result) {
      if (output.slot != Slot::kW13WeightScale && output.slot != Slot::kW2WeightScale) continue;
      output.storage.torch_dtype = "float8_e8m0fnu";
    }
  }
  for (Slot slot : {Slot::kW13Bias, Slot::kW2Bias}) {
    if (loaded.has(slot)) result.push_back(f32_bias_output(loaded, slot));
  }
  return result;
}

Layout aiter_bf16(const char* id, HalfRows w13, Joined joined, const char* preconditions,
                  const char* source) {
  const char* type = joined == Joined::kW2 ? " (float8_e8m0fnu)" : "";
  return {
      .id = id,
      .outputs_doc =
          fmt::format("w13_weight, w2_weight: U8 [E, N, C] (float4_e2m1fn_x2, is_shuffled)\n"
                      "w13_weight_scale: U8 [{}, up(H/32,8)]{}\n"
                      "w2_weight_scale: U8 [{}, up(I/32,8)]{}\n"
                      "w13_bias, w2_bias: F32 [E, N], when loaded",
                      joined == Joined::kBoth ? "up(E*2I,256)" : "E*2I", type,
                      joined == Joined::kNone ? "E*H" : "up(E*H,256)", type),
      .formula = fmt::format(
          "{}weight byte (r,c): offset (r/16)*16C + (c/16)*256 + (r%16)*16 + c%16\n"
          "scale (r,c), columns padded to a multiple of 8 with 0x7F: offset (r/32)*32*up(S,8) + "
          "(c/8)*256 + (c%4)*64 + (r%16)*4 + ((c/4)%2)*2 + (r/16)%2",
          w13 == HalfRows::kMixed ? "w13 row g*I+i -> 32*(i/16) + 16*g + i%16, not in the bias\n"
                                  : ""),
      .preconditions = preconditions,
      .source = source,
      .kernel_library = "AITER 0.1.19",
      .outputs = [=](const LayoutInput& input) {
        return aiter_bf16_outputs(id, input.loaded, w13, joined);
      }};
}

constexpr const char* kMultiplesOf128 = "H and I multiples of 128";
constexpr const char* kAiterBf16Source =
    "AITER 0.1.19 aiter/ops/shuffle.py, aiter/utility/fp4_utils.py; vLLM 017e9f4448 "
    "fused_moe/oracle/mxfp4.py, generic converter, vllm/_aiter_ops.py";

}  // namespace

const Layout kAiterBf16HalvesLayout = aiter_bf16("aiter/bf16-halves", HalfRows::kMixed,
                                                 Joined::kNone, kMultiplesOf128, kAiterBf16Source);
const Layout kAiterBf16SituA8w4Layout = aiter_bf16("aiter/bf16-situ-a8w4", HalfRows::kMixed,
                                                   Joined::kW2, kMultiplesOf128, kAiterBf16Source);
const Layout kAiterBf16SituLayout =
    aiter_bf16("aiter/bf16-situ", HalfRows::kKept, Joined::kW2, kMultiplesOf128, kAiterBf16Source);
const Layout kAiterBf16SeparatedLayout = aiter_bf16(
    "aiter/bf16-separated", HalfRows::kKept, Joined::kBoth, "H a multiple of 64, I of 128",
    "AITER 0.1.19 aiter/ops/shuffle.py, aiter/utility/fp4_utils.py; vLLM 0.24.0, 0.32.0 "
    "fused_moe/oracle/mxfp4.py");

}  // namespace mxfp4
