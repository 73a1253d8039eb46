#include "lib/layouts/flashinfer_cutlass_common.hpp"

#include <cstring>
#include <utility>

#include "lib/core/float_bits.hpp"
#include "lib/layouts/block_scale_swizzle.hpp"
#include "lib/layouts/flashinfer_common.hpp"
#include "lib/layouts/slot_outputs.hpp"
#include "lib/steps/element_map.hpp"
#include "lib/steps/float_recodings.hpp"

namespace mxfp4 {
namespace {

const Recoding kCanonicalNanBf16 = {
    "bf16, NaN = 7FFF",
    2,
    2,
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint16_t, uint16_t>(in, out,
                                       [](uint16_t v) { return bf16_from_f32(f32_from_bf16(v)); });
    },
    [](ConstBytes in, MutableBytes out) { std::memcpy(out.data(), in.data(), in.size()); },
};

}  // namespace

Program cutlass_rows(const LoadedSpec& loaded, Slot slot) {
  const auto [rows, row_bytes] = loaded.expert(slot);
  Program program(rows * row_bytes);
  if (slot_is_w13(slot)) program.then(GatherRows{row_bytes, up_half_gate_half(rows)});
  return program;
}

Output cutlass_bias_output(const LoadedSpec& loaded, Slot slot) {
  if (!slot_is_w13(slot)) return identity_output(loaded, slot);
  TensorSpec spec = loaded.tensor(slot);
  const bool rounds = spec.dtype == DType::kF32;
  spec.dtype = DType::kBF16;
  Program program = cutlass_rows(loaded, slot);
  program.then(Recode{rounds ? &kF32ToBf16 : &kCanonicalNanBf16, loaded.expert(slot).rows});
  Output output = slot_output(loaded, slot, spec, std::move(program));
  output.lost = rounds ? "low bits of w13_bias, rounded from F32 to BF16"
                       : "NaN payloads and signs of w13_bias";
  return output;
}

Output rows_output(const LoadedSpec& loaded, Slot slot, Program rows) {
  return slot_output(loaded, slot, loaded.tensor(slot), std::move(rows));
}

Output swizzled_scale_output(const LoadedSpec& loaded, Slot slot, Program rows) {
  const auto [count, columns] = loaded.expert(slot);
  return rows_output(loaded, slot, std::move(swizzle_128x4(rows, count, columns)));
}

std::vector<Output> cutlass_outputs(std::string_view layout_id, const LoadedSpec& loaded,
                                    CutlassOutput weight, CutlassOutput scale) {
  require_flashinfer_sizes(layout_id, loaded.dims);
  require_biases(layout_id, loaded);
  std::vector<Output> result;
  for (const Slot slot : {Slot::kW13Weight, Slot::kW2Weight}) {
    result.push_back(weight(loaded, slot, cutlass_rows(loaded, slot)));
  }
  for (const Slot slot : {Slot::kW13WeightScale, Slot::kW2WeightScale}) {
    result.push_back(scale(loaded, slot, cutlass_rows(loaded, slot)));
  }
  for (const Slot slot : {Slot::kW13Bias, Slot::kW2Bias}) {
    result.push_back(cutlass_bias_output(loaded, slot));
  }
  return result;
}

}  // namespace mxfp4
