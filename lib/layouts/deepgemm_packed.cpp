// DEEPGEMM_MXFP4 with scales packed for the kernel: four codes of a row in one word, words of one
// column group together. Everything else as loaded, both families alike.
//
//   w13_weight, w2_weight, w13_bias, w2_bias   as loaded; biases optional
//   w13_weight_scale   I32 [E, Kp, 2I]         Kp = up(H/32, 4) / 4
//   w2_weight_scale    I32 [E, Kp, H]          Kp = up(I/32, 4) / 4
//
// Byte j of word (e, k, n), little-endian, is the code of row n, column 4k + j; 0 beyond the last
// column. The shapes are those of the memory; the engine views it as [E, N, Kp] with strides
// (Kp N, 1, N), so that Kp = 1 is a plain [E, N, 1]. Example, N = 256: the scale (3, 6) is byte 2
// of word 1*256 + 3.
//
// Preconditions: none. Source: vLLM 017e9f4448 fused_moe/oracle/mxfp4.py (both converters) and
// DeepGEMM 54e2261 csrc/apis/layout.hpp (transform_sf_into_required_layout, recipe 1, 1, 32).
#include "lib/core/checked.hpp"
#include "lib/layouts/all.hpp"

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
    .backends = "DEEPGEMM_MXFP4",
    .outputs_doc =
        "weights and biases as loaded\n"
        "w13_weight_scale I32 [E, up(H/32,4)/4, 2I]\n"
        "w2_weight_scale I32 [E, up(I/32,4)/4, H]",
    .formula = "byte j of word (k, n) = scale code of row n, column 4k+j; 0 beyond the columns",
    .preconditions = "none",
    .source =
        "vLLM 017e9f4448 fused_moe/oracle/mxfp4.py; DeepGEMM 54e2261 csrc/apis/layout.hpp, "
        "csrc/jit_kernels/impls/smxx_layout.hpp",
    .kernel_library = "",
    .outputs = deepgemm_packed_outputs,
    .check_data = nullptr,
};

}  // namespace mxfp4
