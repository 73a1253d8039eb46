#include "tests/golden/drawn_inputs.hpp"

#include <cstring>

#include "lib/core/dtype.hpp"

namespace mxfp4::test {
namespace {

template <class Word, class Map>
void map_words(std::vector<std::byte>& bytes, Map map) {
  for (size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof(Word));
    word = map(word);
    std::memcpy(bytes.data() + at, &word, sizeof(Word));
  }
}

uint16_t bias_of(uint16_t drawn) {
  return static_cast<uint16_t>((drawn & 0x8000) | (120 + (drawn >> 7 & 7)) << 7 | (drawn & 0x7F));
}

std::vector<std::byte> drawn_bias(uint64_t seed, const TensorSpec& spec) {
  const int64_t count = spec.shape.elements();
  std::vector<std::byte> bytes = drawn_bytes(seed, count * 2);
  map_words<uint16_t>(bytes, bias_of);
  if (spec.dtype == DType::kBF16) return bytes;
  std::vector<std::byte> wide(bytes.size() * 2);
  for (size_t i = 0; i < bytes.size() / 2; ++i) {
    std::memcpy(&wide[4 * i + 2], &bytes[2 * i], 2);
  }
  return wide;
}

std::vector<std::byte> drawn_input_scales(uint64_t seed, int64_t count, const std::string& mode) {
  std::vector<std::byte> bytes = drawn_bytes(seed, count * 4);
  uint32_t expert = 0;
  uint32_t first = 0;
  map_words<uint32_t>(bytes, [&](uint32_t drawn) {
    uint32_t bits = (118 + (drawn >> 23 & 7)) << 23 | (drawn & 0x7FFFFF);
    if (expert == 0) first = bits;
    if (mode == "uniform") bits = first;
    if (mode == "near") bits = first + expert;
    ++expert;
    return bits;
  });
  return bytes;
}

// Both codes of a byte, with their magnitudes' numbers modulo `count`.
std::byte below(size_t count, std::byte pair) {
  const auto both = std::to_integer<size_t>(pair);
  return static_cast<std::byte>((both & 0x88) | (both >> 4 & 7) % count << 4 | (both & 7) % count);
}

std::vector<std::byte> drawn_slot(Slot slot, const TensorSpec& spec, const Draw& draw) {
  const uint64_t seed = draw.seed * 16 + static_cast<uint64_t>(slot);
  switch (slot) {
    case Slot::kW13Bias:
    case Slot::kW2Bias:
      return drawn_bias(seed, spec);
    case Slot::kW13InputScale:
    case Slot::kW2InputScale:
      return drawn_input_scales(seed, spec.shape.elements(), draw.input_scale_mode);
    default:
      break;
  }
  std::vector<std::byte> bytes = drawn_bytes(seed, spec.bytes());
  const bool is_scale = slot == Slot::kW13WeightScale || slot == Slot::kW2WeightScale;
  if (is_scale && draw.scale_mode == "typical") {
    for (std::byte& b : bytes) b = static_cast<std::byte>(112 + (std::to_integer<int>(b) & 31));
  }
  if (draw.scale_mode == "every") {
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = is_scale ? static_cast<std::byte>(i / 8 % 253) : below(i / 16 % 8 + 1, bytes[i]);
    }
  }
  return bytes;
}

}  // namespace

std::vector<std::byte> drawn_bytes(uint64_t seed, int64_t count) {
  std::vector<std::byte> bytes(static_cast<size_t>((count + 7) / 8 * 8));
  uint64_t state = seed;
  map_words<uint64_t>(bytes, [&](uint64_t) {
    state += 0x9E3779B97F4A7C15;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  });
  bytes.resize(static_cast<size_t>(count));
  return bytes;
}

LoadedLayer drawn_layer(const LoadedSpec& spec, const Draw& draw) {
  LoadedLayer layer;
  layer.spec = spec;
  for (Slot slot : kAllSlots) {
    if (!spec.has(slot)) continue;
    layer.slots[slot] = {spec.tensor(slot), drawn_slot(slot, spec.tensor(slot), draw)};
  }
  return layer;
}

LoadedLayer padded_layer(const LoadedLayer& layer, Family family, LayerDims dims) {
  LoadedLayer padded;
  padded.spec = layer.spec;
  padded.spec.dims = dims;
  for (const auto& [slot, tensor] : layer.slots) {
    const bool halves = slot_is_w13(slot) && family == Family::kGeneric;
    const ExpertMatrix from = layer.spec.expert(slot);
    const ExpertMatrix to = padded.spec.expert(slot);
    const int64_t blocks = dims.num_experts * (halves ? 2 : 1);
    const int64_t from_rows = from.rows / (halves ? 2 : 1);
    const int64_t to_rows = to.rows / (halves ? 2 : 1);
    std::vector<std::byte> bytes(static_cast<size_t>(dims.num_experts * to.bytes()));
    for (int64_t row = 0; row < blocks * from_rows; ++row) {
      const int64_t target = row / from_rows * to_rows + row % from_rows;
      std::memcpy(bytes.data() + target * to.row_bytes, tensor.bytes.data() + row * from.row_bytes,
                  static_cast<size_t>(from.row_bytes));
    }
    padded.slots[slot] = {padded.spec.tensor(slot), std::move(bytes)};
  }
  return padded;
}

}  // namespace mxfp4::test
