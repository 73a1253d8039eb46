#include "lib/steps/hopper_value_step.hpp"

#include <utility>

#include "lib/kernels/hopper_mix.hpp"
#include "lib/kernels/hopper_rows.hpp"
#include "lib/kernels/hopper_value.hpp"
#include "lib/steps/element_map.hpp"

namespace mxfp4 {
namespace {

namespace hopper = kernels::hopper;

// The four bytes of a word hold the codes a to d, low nibbles for its low half.
constexpr uint32_t mix_word(uint32_t bytes) {
  const auto half = [&](int shift) {
    const auto code = [&](int slot) { return bytes >> (8 * slot + shift) & 0xF; };
    return hopper::mix({code(0), code(1), code(2), code(3)});
  };
  return half(0) | half(4) << 16;
}

constexpr uint32_t unmix_word(uint32_t word) {
  const auto bytes = [](const hopper::Codes& codes) {
    return codes.a | codes.b << 8 | codes.c << 16 | codes.d << 24;
  };
  return bytes(hopper::unmix(word & 0xFFFF)) | bytes(hopper::unmix(word >> 16)) << 4;
}

static_assert(mix_word(0x04030201) == 0x0853 && mix_word(0x40302010) == 0x0853'0000);
static_assert(unmix_word(0x0853'0000) == 0x40302010);

using HopperKernel = void (*)(int64_t rows, int64_t columns, const std::byte* in, bool streaming,
                              std::byte* out) noexcept;

// Sixteen rows are a piece of their own.
Custom step_of(std::string_view name, HopperKernel pack, HopperKernel unpack, int64_t rows,
               int64_t columns, Permute bytes) {
  const auto running = [columns](HopperKernel kernel) {
    return [=](ConstBytes in, bool streaming, MutableBytes out) {
      const int64_t count = columns == 0 ? 0 : static_cast<int64_t>(in.size()) / columns;
      kernel(count, columns, in.data(), streaming, out.data());
    };
  };
  return {.name = name,
          .in_bytes = rows * columns,
          .out_bytes = rows * columns,
          .piece_bytes = 16 * columns,
          .forward = running(pack),
          .inverse = running(unpack),
          .same_as = {std::move(bytes), Recode{&kHopperMix, rows * columns / 4}}};
}

}  // namespace

const Recoding kHopperMix = {
    "hopper fp4 word",
    4,
    4,
    [](ConstBytes in, MutableBytes out) { map_elements<uint32_t, uint32_t>(in, out, mix_word); },
    [](ConstBytes in, MutableBytes out) { map_elements<uint32_t, uint32_t>(in, out, unmix_word); },
    true,
};

Permute hopper_value_bytes(int64_t rows, int64_t columns) {
  // n = (m, bit 3, bits 2..1, bit 0) and c = (g, bits 4..3, bit 2, bits 1..0) become R = (m, n21)
  // and byte (g, n0, c10, c43, c2, n3).
  return {Unit::kByte, {rows / 16, 2, 4, 2, columns / 32, 4, 2, 4}, {0, 2, 4, 3, 7, 5, 6, 1}};
}

Permute hopper_rows_bytes(int64_t rows, int64_t columns) {
  // r = (m, bit 3, bits 2..0) and c = (p, bit 4, bit 3, bit 2, bits 1..0) become row (m, c3, r210)
  // and byte (p, c4, c10, c2, r3).
  return {Unit::kByte, {rows / 16, 2, 8, columns / 32, 2, 2, 2, 4}, {0, 5, 2, 3, 4, 7, 6, 1}};
}

Custom hopper_value_step(int64_t rows, int64_t columns) {
  return step_of("hopper value swizzle", kernels::hopper_value_pack, kernels::hopper_value_unpack,
                 rows, columns, hopper_value_bytes(rows, columns));
}

Custom hopper_rows_step(int64_t rows, int64_t columns) {
  return step_of("hopper row interleave", kernels::hopper_rows_pack, kernels::hopper_rows_unpack,
                 rows, columns, hopper_rows_bytes(rows, columns));
}

}  // namespace mxfp4
