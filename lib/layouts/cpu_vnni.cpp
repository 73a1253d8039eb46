// CPU (x86 with AVX-512 BF16 or AMX, W4A16), gpt_oss family; gate/up rows stay interleaved.
//
// Per expert and matrix: N rows of C bytes and G scales, in blocks of 32 rows; `/` is integer
// division.
//   weights U8 [E, N, C]: row n, element j -> byte (n/32)*32C + 32*(j/2) + 2*(n%16) + j%2,
//     its high nibble if n % 32 >= 16, else its low one   (C = 16, n = 17, j = 5: byte 67, high)
//   scales U8 [E, N, G]: (n, g) -> (n/32)*32G + 32*g + n%32      (G = 4, n = 33, g = 2: byte 193)
//   biases F32 [E, N]: widened, order kept; optional
// Preconditions: N % 32 == 0 (fewer rows would let the reference read uninitialised stack bytes).
// Source: vLLM a2c8fc6657 fused_moe/experts/cpu_moe.py (prepare_mxfp4_moe_layer_for_cpu),
// csrc/cpu/sgl-kernels/gemm.cpp. Scalar code with a fixed block: the same bytes on every build.
#include "lib/layouts/all.hpp"
#include "lib/layouts/mma_tiles.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kRowBlock = 32;

Output cpu_vnni_weight_output(const LoadedSpec& loaded, Slot slot) {
  const auto [rows, row_bytes] = loaded.expert(slot);
  // Axes: n / 32, n % 32 / 16, n % 16, byte column, nibble.
  Program program(rows * row_bytes);
  program.then(
      Permute{Unit::kNibble, {rows / kRowBlock, 2, 16, row_bytes, kCodesPerByte}, {0, 3, 2, 4, 1}});
  return slot_output(loaded, slot, loaded.tensor(slot), std::move(program));
}

Output cpu_vnni_scale_output(const LoadedSpec& loaded, Slot slot) {
  const auto [rows, groups] = loaded.expert(slot);
  Program program(rows * groups);
  program.then(Permute{Unit::kByte, {rows / kRowBlock, kRowBlock, groups}, {0, 2, 1}});
  return slot_output(loaded, slot, loaded.tensor(slot), std::move(program));
}

std::vector<Output> cpu_vnni_outputs(const LayoutInput& input) {
  const LoadedSpec& loaded = input.loaded;
  const auto matrices = moe_matrices(loaded.dims);
  for (const MoeMatrix& m : matrices) {
    require_multiple("cpu/vnni32", "rows", m.n, kRowBlock);
  }
  std::vector<Output> result;
  result.reserve(3 * matrices.size());
  for (const MoeMatrix& m : matrices) result.push_back(cpu_vnni_weight_output(loaded, m.weight));
  for (const MoeMatrix& m : matrices) result.push_back(cpu_vnni_scale_output(loaded, m.scale));
  if (!loaded.bias) return result;
  for (const MoeMatrix& m : matrices) result.push_back(f32_bias_output(loaded, m.bias));
  return result;
}

}  // namespace

const Layout kCpuVnni32Layout = {
    .id = "cpu/vnni32",
    .backends = "CPU",
    .outputs_doc = "weights and scales U8, shapes as loaded; biases F32",
    .formula =
        "N rows of C bytes and G scales; / is integer division\n"
        "code (n, j) -> byte (n/32)*32C + 32*(j/2) + 2*(n%16) + j%2, high nibble if n%32 >= 16\n"
        "scale (n, g) -> (n/32)*32G + 32*g + n%32\n"
        "bias: order kept",
    .preconditions = "H a multiple of 32, I of 32",
    .source = "vLLM a2c8fc6657 fused_moe/experts/cpu_moe.py, prepare_mxfp4_moe_layer_for_cpu",
    .kernel_library = "",
    .outputs = cpu_vnni_outputs,
    .check_data = nullptr,
};

}  // namespace mxfp4
