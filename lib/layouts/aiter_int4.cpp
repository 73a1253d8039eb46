// AITER_MXFP4_BF16 on gfx942 for SiTU's experts, where the user asks for int4: the method class
// turns each group of 32 codes into integers from -7 to 7 with a BF16 scale, with loss.
//
// Example: a group with s = 127 and largest code 6.0: scale 0x3F5B (6/7), code 1.5 -> 1.5 / 0.8555
// = 1.7578 -> 2.
//
// Only scale bytes from 101 to 108 give other numbers than larger ones: below, all is 0. From 253
// on values may be infinite in BF16, and no CPU or GPU promises an integer for infinity.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "lib/core/checked.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/core/float_bits.hpp"
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/slot_outputs.hpp"

namespace mxfp4 {
namespace {

constexpr size_t kGroupBytes = kBlock / kCodesPerByte;
constexpr int kLargestScaleByte = 252;
constexpr int kLargestNumber = 7;
constexpr std::array<float, 8> kCodeMagnitudes = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};

constexpr float as_bf16(float value) {
  return std::bit_cast<float>(f32_from_bf16(bf16_from_f32(std::bit_cast<uint32_t>(value))));
}

constexpr float value_of(size_t magnitude, int scale) {
  const auto power = std::bit_cast<float>(scale == 0 ? 0x00400000U : uint32_t(scale) << 23);
  return as_bf16(kCodeMagnitudes[magnitude] * power);
}

// A group's scale, by the magnitude of its largest code.
constexpr float int4_scale(size_t largest, int scale) {
  const float most = std::max(value_of(largest, scale), as_bf16(1e-6F));
  return as_bf16(most / static_cast<float>(kLargestNumber));
}

// Two's complement of the number that a code of a group becomes.
constexpr unsigned int4_number(size_t largest, int scale, unsigned code) {
  const size_t magnitude = code & 7U;
  if (magnitude > largest) return 0;  // there is none
  const float ratio = as_bf16(value_of(magnitude, scale) / int4_scale(largest, scale));
  int number = static_cast<int>(ratio);
  const float rest = ratio - static_cast<float>(number);
  if (rest > 0.5F || (rest == 0.5F && number % 2 == 1)) ++number;
  number = std::min(number, kLargestNumber);
  return static_cast<unsigned>((code & 8U) != 0 ? -number : number) & 15U;
}

// Scale bytes outside of these give the same numbers as the nearer of the two.
constexpr int kLowByte = 100, kHighByte = 109;

using Int4Bytes = std::array<std::byte, 256>;
using Int4Tables = std::array<std::array<Int4Bytes, kHighByte - kLowByte + 1>, 8>;

constexpr Int4Tables make_int4_tables() {
  Int4Tables tables{};
  for (size_t largest = 0; largest < tables.size(); ++largest) {
    for (int scale = kLowByte; scale <= kHighByte; ++scale) {
      std::array<unsigned, 16> numbers{};
      for (unsigned code = 0; code < numbers.size(); ++code) {
        numbers[code] = int4_number(largest, scale, code);
      }
      Int4Bytes& table = tables[largest][static_cast<size_t>(scale - kLowByte)];
      for (size_t byte = 0; byte < table.size(); ++byte) {
        table[byte] = static_cast<std::byte>(numbers[byte & 15] | numbers[byte >> 4] << 4);
      }
    }
  }
  return tables;
}

constexpr Int4Tables kInt4Tables = make_int4_tables();

size_t largest_magnitude(ConstBytes codes) {
  unsigned largest = 0;
  for (const std::byte pair : codes) {
    const auto both = std::to_integer<unsigned>(pair);
    largest = std::max({largest, both & 7U, both >> 4 & 7U});
  }
  return largest;
}

// Four bytes of eight numbers, in the order that the kernel unpacks: 0 4 1 5 2 6 3 7.
void order_numbers(const std::byte* in, std::byte* out) {
  constexpr std::byte kLow{0x0F}, kHigh{0xF0};
  for (size_t pair = 0; pair < 2; ++pair) {
    out[2 * pair] = (in[pair] & kLow) | in[pair + 2] << 4;
    out[2 * pair + 1] = in[pair] >> 4 | (in[pair + 2] & kHigh);
  }
}

// The numbers stay in their rows; their order within eight is the kernel's.
void requantize_to_int4(ConstBytes codes, ConstBytes scales, MutableBytes out) {
  for (size_t group = 0; group < scales.size(); ++group) {
    const ConstBytes in = codes.subspan(group * kGroupBytes, kGroupBytes);
    const int scale = std::clamp(std::to_integer<int>(scales[group]), kLowByte, kHighByte);
    const Int4Bytes& table =
        kInt4Tables[largest_magnitude(in)][static_cast<size_t>(scale - kLowByte)];
    std::array<std::byte, kGroupBytes> numbers{};
    std::ranges::transform(in, numbers.begin(),
                           [&](std::byte b) { return table[std::to_integer<size_t>(b)]; });
    for (size_t at = 0; at < kGroupBytes; at += 4) {
      order_numbers(&numbers[at], &out[group * kGroupBytes + at]);
    }
  }
}

void int4_scales(ConstBytes scales, ConstBytes codes, MutableBytes out) {
  for (size_t group = 0; group < scales.size(); ++group) {
    const size_t largest = largest_magnitude(codes.subspan(group * kGroupBytes, kGroupBytes));
    const float scale = int4_scale(largest, std::to_integer<int>(scales[group]));
    const auto bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(scale) >> 16);
    std::memcpy(out.data() + group * sizeof(bits), &bits, sizeof(bits));
  }
}

Output int4_output(Slot slot, TensorSpec spec, Combination combination) {
  Output output;
  output.name = slot_name(slot);
  output.slot = slot;
  output.spec = spec;
  output.program = Program(combination.out_bytes);
  output.combination = std::move(combination);
  output.lost = "groups of 32 codes were rounded to integers with a scale of their own";
  output.restores_slot = false;
  return output;
}

Output int4_weight_output(const LoadedSpec& loaded, Slot weight, Slot scale) {
  const auto [rows, row_bytes] = loaded.expert(weight);
  Combination combination;
  combination.slots = {weight, scale};
  combination.out_bytes = checked_mul(rows, row_bytes);
  combination.forward = [](std::span<const ConstBytes> in, MutableBytes out) {
    requantize_to_int4(in[0], in[1], out);
  };
  Output output = int4_output(weight, loaded.tensor(weight), std::move(combination));
  // Axes: n / 16, n % 16, k / 16, k % 16 / 2.
  output.program.then(Permute{Unit::kByte, {rows / 16, 16, row_bytes / 8, 8}, {0, 2, 1, 3}});
  output.storage.torch_dtype = "int4";
  output.storage.flags = {"is_shuffled"};
  return output;
}

Output int4_scale_output(const LoadedSpec& loaded, Slot scale, Slot weight) {
  const auto [rows, groups] = loaded.expert(scale);
  const int64_t count = checked_mul(rows, groups);
  Combination combination;
  combination.slots = {scale, weight};
  combination.out_bytes = checked_mul(count, dtype_bytes(DType::kBF16));
  combination.forward = [](std::span<const ConstBytes> in, MutableBytes out) {
    int4_scales(in[0], in[1], out);
  };
  Output output = int4_output(scale, {DType::kBF16, {checked_mul(loaded.dims.num_experts, count)}},
                              std::move(combination));
  // Axes: n, g / 2, g % 2.
  output.program.then(Permute{Unit::kWord16, {rows, groups / 2, 2}, {1, 0, 2}});
  return output;
}

std::vector<Output> aiter_int4_outputs(const LayoutInput& input) {
  const LoadedSpec& loaded = input.loaded;
  require_multiple(kAiterInt4Layout.id, "hidden size", loaded.dims.hidden_size, 2 * kBlock);
  require_multiple(kAiterInt4Layout.id, "intermediate size", loaded.dims.intermediate_size,
                   2 * kBlock);
  std::vector<Output> result = {
      int4_weight_output(loaded, Slot::kW13Weight, Slot::kW13WeightScale),
      int4_weight_output(loaded, Slot::kW2Weight, Slot::kW2WeightScale),
      int4_scale_output(loaded, Slot::kW13WeightScale, Slot::kW13Weight),
      int4_scale_output(loaded, Slot::kW2WeightScale, Slot::kW2Weight),
  };
  for (const Slot slot : {Slot::kW13Bias, Slot::kW2Bias}) {
    if (loaded.has(slot)) result.push_back(identity_output(loaded, slot));
  }
  return result;
}

std::string check_int4_scales(const LayoutInput&, Slot slot, ConstBytes granule) {
  if (slot != Slot::kW13WeightScale && slot != Slot::kW2WeightScale) return "";
  const auto found = std::ranges::max_element(granule);
  if (found == granule.end() || std::to_integer<int>(*found) <= kLargestScaleByte) return "";
  throw Error::unsupported(
      fmt::format("{}: scale bytes may be at most {} to be requantized to int4, found {}",
                  slot_name(slot), kLargestScaleByte, std::to_integer<int>(*found)));
}

}  // namespace

const Layout kAiterInt4Layout = {
    .id = "aiter/int4",
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, K/2] (int4, is_shuffled)\n"
        "w13_weight_scale, w2_weight_scale: BF16 [E*(K/32)*N]\n"
        "w13_bias, w2_bias: as loaded, when loaded",
    .formula =
        "of a group of 32 values v = code * 2^(s-127), each step rounded to BF16:\n"
        "scale: max(largest |v|, 1e-6) / 7\n"
        "number: v / scale, to the nearest integer, ties to even, at most 7; two's complement\n"
        "number (n,k): nibble k%8/4 of byte 128*((n/16)*(K/16) + k/16) + 8*(n%16) + 4*(k%16/8) + "
        "k%4\n"
        "scale (n,g): offset 2*((g/2)*N + n) + g%2",
    .preconditions = "H and I multiples of 64; scale bytes at most 252",
    .source =
        "vLLM 0.33.0 quantization/mxfp4.py, _setup_kernel_k3_situ_gfx942; ROCm/aiter 0122c48149c1 "
        "aiter/ops/shuffle.py, 0164c2ff67d6 aiter/ops/quant.py, per_1x32_i4_quant",
    .kernel_library = "AITER 0122c48149c1",
    .outputs = aiter_int4_outputs,
    .check_data = check_int4_scales,
    .refuses_scales = true,
};

}  // namespace mxfp4
