#include "lib/layouts/humming_requantize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/core/float_bits.hpp"

namespace mxfp4 {
namespace {

constexpr int kExponentBias = 127;
constexpr uint16_t kF16Infinity = 0x7C00;

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

struct ScaleRange {
  int smallest, largest;
};

void extend(ScaleRange& range, int scale) {
  range = {std::min(range.smallest, scale), std::max(range.largest, scale)};
}

ScaleRange range_of(ConstBytes scales) {
  const auto [low, high] = std::ranges::minmax_element(scales);
  return {std::to_integer<int>(*low), std::to_integer<int>(*high)};
}

// The ranges that have a base: of each row, or of the whole expert. Columns that repeat a row's
// largest byte do not change them.
std::vector<ScaleRange> ranges_of(ConstBytes scales, const PadMatrix& pad,
                                  HummingRounding rounding) {
  std::vector<ScaleRange> ranges;
  if (rounding.by_row) {
    const auto row_bytes = static_cast<size_t>(pad.row_bytes);
    for (size_t at = 0; at < scales.size(); at += row_bytes) {
      ranges.push_back(range_of(scales.subspan(at, row_bytes)));
    }
    return ranges;
  }
  const auto fill = std::to_integer<int>(pad.fill);
  const bool columns = pad.row_bytes != pad.out_row_bytes && !rounding.repeats_largest;
  ranges.push_back(scales.empty() ? ScaleRange{fill, fill} : range_of(scales));
  if (columns || pad.rows != pad.out_rows) extend(ranges.front(), fill);
  return ranges;
}

// One base by row, or one for all.
class Bases {
 public:
  Bases(ConstBytes scales, const PadMatrix& pad, HummingRounding rounding)
      : by_row_(rounding.by_row), padding_(std::to_integer<int>(pad.fill)) {
    for (const ScaleRange& range : ranges_of(scales, pad, rounding)) {
      bases_.push_back(std::max(range.smallest, range.largest - rounding.span));
    }
  }
  // New rows have scales that are all alike.
  [[nodiscard]] int operator[](size_t row) const {
    if (!by_row_) return bases_.front();
    return row < bases_.size() ? bases_[row] : padding_;
  }

 private:
  std::vector<int> bases_;
  bool by_row_;
  int padding_;
};

// In two roundings, as the reference: base 255 is infinite whatever comes after.
float second_scale_of(int base, HummingRounding rounding) {
  return std::ldexp(std::ldexp(1.0F, base - kExponentBias), -rounding.halvings);
}

// A row's scale, in row_type. A power of two from 2^-128 on, or infinity: exact in BF16.
uint16_t row_scale_of(int base, HummingRounding rounding) {
  const auto bits = std::bit_cast<uint32_t>(second_scale_of(base, rounding));
  return rounding.row_type == DType::kF16 ? f16_from_f32(bits) : static_cast<uint16_t>(bits >> 16);
}

int base_from(float value, HummingRounding rounding) {
  if (std::isinf(value) && value > 0) return 2 * kExponentBias + 1;
  int exponent = 0;
  if (!(value > 0) || std::frexp(value, &exponent) != 0.5F) {
    throw Error::input(fmt::format("a second scale must be a power of two, found {}", value));
  }
  return exponent - 1 + kExponentBias + rounding.halvings;
}

// The base of a row as the stored second scale implies it.
int stored_base(ConstBytes stored, HummingRounding rounding, size_t row) {
  if (!rounding.by_row) {
    float value = 0;
    std::memcpy(&value, stored.data(), sizeof(value));
    return base_from(value, rounding);
  }
  const size_t at = row / 32 * 32 + row % 8 / 2 * 8 + row % 32 / 8 * 2 + row % 2;  // mma_bias_order
  uint16_t bits = 0;
  std::memcpy(&bits, stored.data() + at * sizeof(bits), sizeof(bits));
  const bool half = rounding.row_type == DType::kF16;
  return base_from(std::bit_cast<float>(half ? f32_from_f16(bits) : f32_from_bf16(bits)), rounding);
}

// Like step_forward(pad), but new columns repeat the row's largest byte.
void pad_with_largest(const PadMatrix& pad, ConstBytes in, MutableBytes out) {
  const auto row_bytes = static_cast<size_t>(pad.row_bytes);
  const auto out_row_bytes = static_cast<size_t>(pad.out_row_bytes);
  std::ranges::fill(out, pad.fill);
  for (size_t row = 0; row < static_cast<size_t>(pad.rows); ++row) {
    const ConstBytes from = in.subspan(row * row_bytes, row_bytes);
    const MutableBytes to = out.subspan(row * out_row_bytes, out_row_bytes);
    std::ranges::copy(from, to.begin());
    if (from.empty()) continue;
    std::ranges::fill(to.subspan(row_bytes), *std::ranges::max_element(from));
  }
}

}  // namespace

HummingRounding humming_rounding(std::string_view input_dtype) {
  if (input_dtype == "float8e4m3") return {"global_scale", 12, 0};
  if (input_dtype == "int8") return {"global_scale", 3, 1};
  throw Error::usage(fmt::format(
      "knob humming_input_dtype: expected float8e4m3 or int8, found '{}'", input_dtype));
}

Combination requantize_weights(Slot weight, Slot scale, const PadMatrix& pad,
                               HummingRounding rounding) {
  constexpr size_t kBlockBytes = kBlock / kCodesPerByte;
  Combination combine;
  combine.slots = {weight, scale};
  combine.out_bytes = pad.rows * pad.row_bytes * static_cast<int64_t>(kBlockBytes);
  combine.forward = [=](std::span<const ConstBytes> in, MutableBytes out) {
    const ConstBytes codes = in[0];
    const ConstBytes scales = in[1];
    const Bases bases(scales, pad, rounding);
    for (size_t block = 0; block < scales.size(); ++block) {
      const int base = bases[block / static_cast<size_t>(pad.row_bytes)];
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

Combination requantize_scales(Slot scale, const PadMatrix& pad, HummingRounding rounding,
                              std::string second_scale_name) {
  Combination combine;
  combine.slots = {scale};
  combine.out_bytes = pad.out_rows * pad.out_row_bytes;
  combine.forward = [=](std::span<const ConstBytes> in, MutableBytes out) {
    const Bases bases(in[0], pad, rounding);
    if (rounding.repeats_largest) {
      pad_with_largest(pad, in[0], out);
    } else {
      step_forward(pad, in[0], out);
    }
    for (size_t i = 0; i < out.size(); ++i) {
      const int base = bases[i / static_cast<size_t>(pad.out_row_bytes)];
      const int clamped = std::max(std::to_integer<int>(out[i]), base);
      out[i] = static_cast<std::byte>(clamped - base + rounding.lift);
    }
  };
  combine.inverse_from = {std::move(second_scale_name)};
  combine.inverse = [=](ConstBytes own, std::span<const ConstBytes> others, MutableBytes out) {
    step_inverse(pad, own, out);
    const auto row_bytes = static_cast<size_t>(pad.row_bytes);
    for (size_t row = 0; row < static_cast<size_t>(pad.rows); ++row) {
      const int base = stored_base(others[0], rounding, row) - rounding.lift;
      for (std::byte& s : out.subspan(row * row_bytes, row_bytes)) {
        s = static_cast<std::byte>(std::to_integer<int>(s) + base);
      }
    }
  };
  return combine;
}

Combination second_scale(Slot scale, const PadMatrix& pad, HummingRounding rounding) {
  Combination combine;
  combine.slots = {scale};
  combine.out_bytes =
      rounding.by_row ? pad.out_rows * dtype_bytes(rounding.row_type) : dtype_bytes(DType::kF32);
  combine.forward = [=](std::span<const ConstBytes> in, MutableBytes out) {
    const Bases bases(in[0], pad, rounding);
    if (!rounding.by_row) {
      const float value = second_scale_of(bases[0], rounding);
      std::memcpy(out.data(), &value, sizeof(value));
      return;
    }
    std::ranges::fill(out, std::byte{0});
    for (size_t row = 0; row < static_cast<size_t>(pad.rows); ++row) {
      const uint16_t bits = row_scale_of(bases[row], rounding);
      std::memcpy(out.data() + row * sizeof(bits), &bits, sizeof(bits));
    }
  };
  return combine;
}

void check_humming_scales(ConstBytes scales, const PadMatrix& pad, HummingRounding rounding) {
  const int most = kHummingLargestShift + rounding.span;
  for (const ScaleRange& range : ranges_of(scales, pad, rounding)) {
    if (range.largest - range.smallest > most) {
      throw Error::unsupported(fmt::format(
          "scale bytes of {} may lie at most {} apart with 8-bit activations, "
          "found {} to {}",
          rounding.by_row ? "a row" : "an expert", most, range.smallest, range.largest));
    }
    if (!rounding.by_row || rounding.row_type != DType::kF16) continue;
    const int base = std::max(range.smallest, range.largest - rounding.span);
    const uint16_t bits = row_scale_of(base, rounding);
    if (bits != 0 && bits != kF16Infinity) continue;
    throw Error::unsupported(fmt::format(
        "float16 has no number for the second scale of a row: 2^{}, from scale bytes {} to {}",
        base - kExponentBias - rounding.halvings, range.smallest, range.largest));
  }
}

}  // namespace mxfp4
