// CPU (x86 with AVX-512 BF16 or AMX, W4A16), gpt_oss family; gate/up rows stay interleaved. Blocks
// of 32 rows. With fewer rows the reference would read uninitialised stack bytes. The reference's
// code is scalar with a fixed block, so every build of it makes the same bytes.
//
// Example: C = 16, byte (n, j) = (17, 5): byte 67, high nibble. S = 4, scale (33, 2): byte 193.
#include "lib/layouts/layout.hpp"
#include "lib/layouts/mma_tiles.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/slot_outputs.hpp"

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
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, C]\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, N, S]\n"
        "w13_bias, w2_bias: F32 [E, N], when loaded",
    .formula =
        "code (n,k): nibble n%32/16 of byte (n/32)*32C + 32*(k/2) + 2*(n%16) + k%2\n"
        "scale (n,s): offset (n/32)*32S + 32*s + n%32",
    .preconditions = "H a multiple of 32, I of 32",
    .source =
        "vLLM a2c8fc6657 fused_moe/experts/cpu_moe.py, prepare_mxfp4_moe_layer_for_cpu; "
        "csrc/cpu/sgl-kernels/gemm.cpp",
    .outputs = cpu_vnni_outputs,
};

}  // namespace mxfp4
