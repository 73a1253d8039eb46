#include "lib/layouts/humming_requantize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

constexpr int kExponentBias = 127;

// Magnitude m * 2^-d as the nearest of 0 .5 1 1.5 2 3 4 6, ties up, by [d][code of m]. From d = 5
// on even 6 * 2^-d is below .25 and all are zero.
constexpr int kTabulatedShifts = 6;
constexpr std::array<std::array<uint8_t, 8>, kTabulatedShifts> kShiftedMagnitude = {{
    {0, 1, 2, 3, 4, 5, 6, 7},
    {0, 1, 1, 2, 2, 3, 4, 5},
    {0, 0, 1, 1, 1, 2, 2, 3},
    {0, 0, 0, 0, 1, 1, 1, 2},
    {0, 0, 0, 0, 0, 0, 1, 1},
    {0, 0, 0, 0, 0, 0, 0, 0},
}};

// Minus zero becomes zero first; a negative value that rounds to zero keeps its sign.
constexpr uint8_t shifted_code(size_t shift, size_t code) {
  constexpr size_t kSign = 8;
  if (code == kSign) return 0;
  return static_cast<uint8_t>((code & kSign) | kShiftedMagnitude[shift][code & (kSign - 1)]);
}

using ByteTable = std::array<std::byte, 256>;

constexpr std::array<ByteTable, kTabulatedShifts> make_byte_tables() {
  std::array<ByteTable, kTabulatedShifts> tables{};
  for (size_t shift = 0; shift < tables.size(); ++shift) {
    for (size_t byte = 0; byte < 256; ++byte) {
      tables[shift][byte] = static_cast<std::byte>(shifted_code(shift, byte & 15) |
                                                   shifted_code(shift, byte >> 4) << 4);
    }
  }
  return tables;
}

constexpr std::array<ByteTable, kTabulatedShifts> kByteTables = make_byte_tables();

int base_of(ConstBytes scales, const PadMatrix& pad, HummingActivation activation) {
  const HummingScaleRange range = humming_scale_range(scales, pad);
  return std::max(range.smallest, range.largest - activation.span);
}

int base_from_global_scale(ConstBytes stored, HummingActivation activation) {
  float value = 0;
  std::memcpy(&value, stored.data(), sizeof(value));
  if (std::isinf(value) && value > 0) return 2 * kExponentBias + 1;
  int exponent = 0;
  if (!(value > 0) || std::frexp(value, &exponent) != 0.5F) {
    throw Error::input(fmt::format("a global scale must be a power of two, found {}", value));
  }
  return exponent - 1 + kExponentBias + activation.halvings;
}

}  // namespace

HummingActivation humming_activation(std::string_view input_dtype) {
  if (input_dtype == "float8e4m3") return {.span = 12, .halvings = 0};
  if (input_dtype == "int8") return {.span = 3, .halvings = 1};
  throw Error::usage(fmt::format(
      "knob humming_input_dtype: expected float8e4m3 or int8, found '{}'", input_dtype));
}

HummingScaleRange humming_scale_range(ConstBytes scales, const PadMatrix& pad) {
  const auto fill = std::to_integer<int>(pad.fill);
  const bool padded = pad.rows != pad.out_rows || pad.row_bytes != pad.out_row_bytes;
  if (scales.empty()) return {fill, fill};
  const auto [low, high] = std::ranges::minmax_element(scales);
  HummingScaleRange range{std::to_integer<int>(*low), std::to_integer<int>(*high)};
  if (padded) range = {std::min(range.smallest, fill), std::max(range.largest, fill)};
  return range;
}

Combination requantize_weights(Slot weight, Slot scale, const PadMatrix& pad,
                               HummingActivation activation) {
  constexpr size_t kBlockBytes = kBlock / kCodesPerByte;
  Combination combine;
  combine.slots = {weight, scale};
  combine.out_bytes = pad.rows * pad.row_bytes * static_cast<int64_t>(kBlockBytes);
  combine.forward = [=](std::span<const ConstBytes> in, MutableBytes out) {
    const ConstBytes codes = in[0];
    const ConstBytes scales = in[1];
    const int base = base_of(scales, pad, activation);
    for (size_t block = 0; block < scales.size(); ++block) {
      const int shift = std::max(base - std::to_integer<int>(scales[block]), 0);
      const ByteTable& table =
          kByteTables[static_cast<size_t>(std::min(shift, kTabulatedShifts - 1))];
      for (size_t i = block * kBlockBytes; i < (block + 1) * kBlockBytes; ++i) {
        out[i] = table[std::to_integer<size_t>(codes[i])];
      }
    }
  };
  combine.inverse = [](ConstBytes own, std::span<const ConstBytes>, MutableBytes out) {
    std::ranges::copy(own, out.begin());
  };
  return combine;
}

Combination requantize_scales(Slot scale, const PadMatrix& pad, HummingActivation activation,
                              std::string global_scale_name) {
  Combination combine;
  combine.slots = {scale};
  combine.out_bytes = pad.out_rows * pad.out_row_bytes;
  combine.forward = [=](std::span<const ConstBytes> in, MutableBytes out) {
    const int base = base_of(in[0], pad, activation);
    step_forward(pad, in[0], out);
    for (std::byte& s : out) {
      s = static_cast<std::byte>(std::max(std::to_integer<int>(s), base) - base);
    }
  };
  combine.inverse_from = {std::move(global_scale_name)};
  combine.inverse = [=](ConstBytes own, std::span<const ConstBytes> others, MutableBytes out) {
    const int base = base_from_global_scale(others[0], activation);
    step_inverse(pad, own, out);
    for (std::byte& s : out) s = static_cast<std::byte>(std::to_integer<int>(s) + base);
  };
  return combine;
}

Combination global_scale(Slot scale, const PadMatrix& pad, HummingActivation activation) {
  Combination combine;
  combine.slots = {scale};
  combine.out_bytes = sizeof(float);
  combine.forward = [=](std::span<const ConstBytes> in, MutableBytes out) {
    const int base = base_of(in[0], pad, activation);
    // In two roundings, as the reference: base 255 is infinite for int8 too.
    const float value = std::ldexp(std::ldexp(1.0F, base - kExponentBias), -activation.halvings);
    std::memcpy(out.data(), &value, sizeof(value));
  };
  return combine;
}

}  // namespace mxfp4
