// DEEPGEMM_MXFP4 with scales packed for the kernel: four codes of a row in one word, words of one
// column group together. Everything else as loaded, both families alike. The shapes are the
// memory's; the engine views a scale tensor of Kp column groups as [E, N, Kp] with strides (Kp N,
// 1, N).
//
// Example, N = 256: the scale (3, 6) is byte 2 of word 1*256 + 3.
#include "lib/core/checked.hpp"
#include "lib/core/dtype.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/slot_outputs.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kCodesPerWord = 4;

Output deepgemm_packed_scale_output(const LoadedSpec& loaded, Slot slot) {
  const auto [rows, columns] = loaded.expert(slot);
  const int64_t padded = round_up(columns, kCodesPerWord);
  const int64_t words = padded / kCodesPerWord;
  Program program(rows * columns);
  if (padded != columns) program.then(PadMatrix{rows, columns, rows, padded, std::byte{0}});
  program.then(Permute{Unit::kWord32, {rows, words}, {1, 0}});
  const int64_t experts = loaded.dims.num_experts;
  const Shape shape = words == 1 ? Shape{experts, rows, 1} : Shape{experts, words, rows};
  Output output = slot_output(loaded, slot, {DType::kI32, shape}, std::move(program));
  output.storage.storage_shape = {experts, rows, words};
  output.storage.storage_strides = {words * rows, 1, rows};
  return output;
}

std::vector<Output> deepgemm_packed_outputs(const LayoutInput& input) {
  return scales_only(input.loaded, deepgemm_packed_scale_output);
}

}  // namespace

const Layout kDeepgemmPackedLayout = {
    .id = "deepgemm/scale-packed-i32",
    .outputs_doc =
        "w13_weight, w2_weight: as loaded\n"
        "w13_weight_scale, w2_weight_scale: I32 [E, up(S,4)/4, N]\n"
        "w13_weight_scale, w2_weight_scale: I32 [E, N, 1], where that is one word\n"
        "w13_bias, w2_bias: as loaded, when loaded",
    .formula = "scale (n,s): byte s%4 of word [s/4][n]; 0 beyond the columns",
    .preconditions = "none",
    .source =
        "vLLM 017e9f4448 fused_moe/oracle/mxfp4.py; DeepGEMM 54e2261 csrc/apis/layout.hpp, "
        "csrc/jit_kernels/impls/smxx_layout.hpp (recipe 1, 1, 32)",
    .outputs = deepgemm_packed_outputs,
};

}  // namespace mxfp4
