#include "lib/layouts/flashinfer_cutlass_common.hpp"

#include <cstring>

#include "lib/layouts/flashinfer_common.hpp"

namespace mxfp4 {
namespace {

// What the GPU's float32 -> bfloat16 conversion writes for any NaN.
constexpr uint16_t kGpuNan = 0x7FFF;

uint16_t f32_to_bf16(uint32_t word) {
  if ((word & 0x7FFFFFFFU) > 0x7F800000U) return kGpuNan;
  return static_cast<uint16_t>((word + 0x7FFFU + (word >> 16 & 1U)) >> 16);
}

template <class From>
void to_bf16(ConstBytes in, MutableBytes out) {
  constexpr int kShift = sizeof(From) == 2 ? 16 : 0;
  for (size_t i = 0; i < in.size() / sizeof(From); ++i) {
    From value;
    std::memcpy(&value, in.data() + i * sizeof(From), sizeof(From));
    const uint16_t rounded = f32_to_bf16(static_cast<uint32_t>(value) << kShift);
    std::memcpy(out.data() + i * sizeof(rounded), &rounded, sizeof(rounded));
  }
}

const Recoding kCanonicalNanBf16 = {
    "bf16, NaN = 7FFF", 2, 2, to_bf16<uint16_t>,
    [](ConstBytes in, MutableBytes out) { std::memcpy(out.data(), in.data(), in.size()); }};

const Recoding kRoundF32ToBf16 = {"f32 -> bf16", 4, 2, to_bf16<uint32_t>,
                                  [](ConstBytes in, MutableBytes out) {
                                    for (size_t i = 0; i < in.size() / 2; ++i) {
                                      uint16_t half;
                                      std::memcpy(&half, in.data() + 2 * i, 2);
                                      const uint32_t word = static_cast<uint32_t>(half) << 16;
                                      std::memcpy(out.data() + 4 * i, &word, 4);
                                    }
                                  }};

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
  program.then(Recode{rounds ? &kRoundF32ToBf16 : &kCanonicalNanBf16, loaded.expert(slot).rows});
  Output output = slot_output(loaded, slot, spec, std::move(program));
  output.lost = rounds ? "low bits of w13_bias, rounded from F32 to BF16"
                       : "NaN payloads and signs of w13_bias";
  return output;
}

}  // namespace mxfp4
