// A loaded layer in memory for layout tests: random bytes in every slot, outputs made expert by
// expert, slots restored from them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lib/layouts/output.hpp"

namespace mxfp4::test {

using Bytes = std::vector<std::byte>;

inline unsigned at(const Bytes& bytes, int64_t index) {
  return std::to_integer<unsigned>(bytes.at(static_cast<size_t>(index)));
}
// Code `index` of packed nibbles, the even one in the low half.
inline unsigned code_at(const Bytes& bytes, int64_t index) {
  return at(bytes, index / 2) >> (index % 2 * 4) & 15U;
}
inline unsigned u16_at(const Bytes& bytes, int64_t index) {
  return at(bytes, 2 * index) | at(bytes, 2 * index + 1) << 8;
}

class LayerBytes {
 public:
  LayerBytes(LayerDims dims, std::optional<DType> bias, unsigned seed = 1) {
    input.loaded = {dims, bias, false};
    std::mt19937 random(seed);
    for (Slot slot : kAllSlots) {
      if (!input.loaded.has(slot)) continue;
      Bytes& bytes = slots[slot];
      bytes.resize(static_cast<size_t>(input.loaded.tensor(slot).bytes()));
      for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    }
  }

  // One granule's bytes of a slot.
  [[nodiscard]] ConstBytes granule(Slot slot, int64_t index, int64_t experts = 1) const {
    const auto size = static_cast<size_t>(input.loaded.expert(slot).bytes() * experts);
    return ConstBytes(slots.at(slot)).subspan(static_cast<size_t>(index) * size, size);
  }

  // The whole output.
  [[nodiscard]] Bytes pack(const Output& output) const {
    Bytes out(static_cast<size_t>(output.spec.bytes()));
    Bytes scratch(static_cast<size_t>(output.program.scratch_bytes()));
    const auto size = static_cast<size_t>(output.program.out_bytes());
    for (int64_t g = 0; g < granules(output); ++g) {
      Bytes combined;
      ConstBytes in;
      if (!output.combination) {
        in = granule(output.slot, g, output.experts_per_granule);
      } else {
        const Combination& combine = *output.combination;
        std::vector<ConstBytes> parts;
        for (Slot slot : combine.slots) {
          parts.push_back(granule(slot, g, output.experts_per_granule));
        }
        combined.resize(static_cast<size_t>(combine.out_bytes));
        combine.forward(parts, combined);
        in = combined;
      }
      output.program.forward(in, MutableBytes(out).subspan(static_cast<size_t>(g) * size, size),
                             scratch);
    }
    return out;
  }

  // The slot that `output` came from, given all outputs' packed bytes.
  [[nodiscard]] Bytes unpack(const Output& output, const std::vector<Output>& outputs) const {
    Bytes back(slots.at(output.slot).size());
    Bytes scratch(static_cast<size_t>(output.program.scratch_bytes()));
    const Bytes packed = pack(output);
    const auto size = static_cast<size_t>(output.program.out_bytes());
    const size_t part = back.size() / static_cast<size_t>(granules(output));
    for (int64_t g = 0; g < granules(output); ++g) {
      const auto index = static_cast<size_t>(g);
      Bytes own(static_cast<size_t>(output.program.in_bytes()));
      output.program.inverse(ConstBytes(packed).subspan(index * size, size), own, scratch);
      const MutableBytes target = MutableBytes(back).subspan(index * part, part);
      if (!output.combination) {
        std::ranges::copy(own, target.begin());
        continue;
      }
      std::vector<Bytes> others;
      for (const std::string& name : output.combination->inverse_from) {
        const Output& other = *std::ranges::find(outputs, name, &Output::name);
        const Bytes whole = pack(other);
        const ptrdiff_t length = other.program.out_bytes();
        others.emplace_back(whole.begin() + g * length, whole.begin() + (g + 1) * length);
      }
      output.combination->inverse(own, std::vector<ConstBytes>(others.begin(), others.end()),
                                  target);
    }
    return back;
  }

  LayoutInput input;
  std::map<Slot, Bytes> slots;

 private:
  [[nodiscard]] int64_t granules(const Output& output) const {
    return input.loaded.dims.num_experts / output.experts_per_granule;
  }
};

inline const Output& output_of(const std::vector<Output>& outputs, std::string_view name) {
  const auto found = std::ranges::find(outputs, name, &Output::name);
  if (found == outputs.end()) throw std::out_of_range(std::string(name));
  return *found;
}

inline void expect_restores_every_slot(const LayerBytes& layer,
                                       const std::vector<Output>& outputs) {
  for (const Output& output : outputs) {
    EXPECT_EQ(output.lost, "") << output.name;
    EXPECT_EQ(layer.unpack(output, outputs), layer.slots.at(output.slot)) << output.name;
  }
}

}  // namespace mxfp4::test
