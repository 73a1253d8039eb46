// One expert's bytes from the stored matrix to the loaded one, by hand.
#include <gtest/gtest.h>

#include <cstring>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/load/slice.hpp"

namespace mxfp4 {
namespace {

std::vector<std::byte> ramp(int64_t size) {
  std::vector<std::byte> out;
  for (int64_t i = 0; i < size; ++i) out.push_back(static_cast<std::byte>(i * 7 + 1));
  return out;
}

std::vector<std::byte> run(const Assembly& assembly, const std::vector<std::byte>& in) {
  std::vector<std::byte> out(static_cast<size_t>(assembly.loaded.bytes()), std::byte{0xEE});
  assembly.forward(in, out);
  return out;
}

template <class T>
std::vector<std::byte> raw(const std::vector<T>& values) {
  std::vector<std::byte> out(values.size() * sizeof(T));
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

// A layer of one expert with H = 64 and I = 64 (I is two scale blocks).
struct Fixture {
  ModelLayers model;
  ExpertLayer layer;
  RankSlice slice;

  explicit Fixture(W13Order order) {
    model.order = order;
    layer.dims = {1, 64, 64};
    for (SlotSource& slot : layer.slots) slot.experts = {{Extent{}}};
    slice.padded = layer.dims;
    slice.end = 64;
  }
};

TEST(Assembly, NothingToDoIsRecognised) {
  for (const W13Order order : {W13Order::kInterleaved, W13Order::kHalves}) {
    Fixture f(order);
    f.layer.slots[static_cast<size_t>(Slot::kW13Bias)].dtype = DType::kBF16;
    f.layer.slots[static_cast<size_t>(Slot::kW2Bias)].dtype = DType::kBF16;
    f.layer.slots[static_cast<size_t>(Slot::kW13InputScale)].dtype = DType::kF32;
    f.layer.slots[static_cast<size_t>(Slot::kW2InputScale)].dtype = DType::kF32;
    for (const Slot slot : kAllSlots) {
      const Assembly assembly = make_assembly(f.model, f.layer, slot, f.slice);
      EXPECT_TRUE(assembly.identity()) << slot_name(slot);
      EXPECT_FALSE(assembly.pads_only()) << slot_name(slot);
      const auto in = ramp(assembly.stored.bytes());
      EXPECT_EQ(run(assembly, in), in) << slot_name(slot);
    }
  }
}

// Inkling's rows alternate as stored, and become halves; the inverse puts them back.
TEST(Assembly, AlternatingRowsBecomeHalves) {
  Fixture f(W13Order::kHalves);
  f.model.alternating = true;
  f.slice.begin = 32;
  f.slice.padded = {1, 96, 64};
  const Assembly assembly = make_assembly(f.model, f.layer, Slot::kW13WeightScale, f.slice);
  EXPECT_FALSE(assembly.identity());
  const auto in = ramp(assembly.stored.bytes());  // 128 rows of 2
  const auto out = run(assembly, in);             // 128 rows of 3
  for (size_t row = 0; row < 128; ++row) {
    const size_t half = row / 64;
    const size_t stored = 2 * (32 + row % 64) + half;
    for (size_t column = 0; column < 3; ++column) {
      const bool filled = row % 64 < 32 && column < 2;
      const std::byte want = filled ? in[stored * 2 + column] : std::byte{0};
      ASSERT_EQ(out[row * 3 + column], want) << row << " " << column;
    }
  }
  std::vector<std::byte> back(in.size(), std::byte{0xEE});
  assembly.backward(out, back);
  for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(back[i], i < 128 ? std::byte{0xEE} : in[i]) << i;
}

std::vector<uint16_t> as_bf16(DType from, const std::vector<std::byte>& values) {
  Fixture f(W13Order::kHalves);
  const int64_t bytes = dtype_bytes(from);
  f.layer.slots[static_cast<size_t>(Slot::kW2Bias)].dtype = from;
  const Assembly assembly = make_assembly(f.model, f.layer, Slot::kW2Bias, f.slice);
  std::vector<std::byte> in = values;
  in.resize(static_cast<size_t>(64 * bytes));
  const auto out = run(assembly, in);
  std::vector<uint16_t> halves(values.size() / static_cast<size_t>(bytes));
  std::memcpy(halves.data(), out.data(), halves.size() * 2);
  return halves;
}

TEST(Assembly, BiasesRoundToNearestEven) {
  EXPECT_EQ(as_bf16(DType::kF32,
                    raw<uint32_t>({0x3F800000, 0x3F808000, 0x3F818000, 0x3F808001, 0x7F800000,
                                   0xFF800000, 0x7FFFFFFF, 0x7F7FFFFF, 0x80000001})),
            (std::vector<uint16_t>{0x3F80, 0x3F80, 0x3F82, 0x3F81, 0x7F80, 0xFF80, 0x7FC0, 0x7F80,
                                   0x8000}));
  EXPECT_EQ(as_bf16(DType::kF16, raw<uint16_t>({0x3C00, 0xBC00, 0x0001, 0x8001, 0x03FF, 0x7C00,
                                                0x7E00, 0x3C04, 0x3C0C})),
            (std::vector<uint16_t>{0x3F80, 0xBF80, 0x3380, 0xB380, 0x3880, 0x7F80, 0x7FC0, 0x3F80,
                                   0x3F82}));
}

TEST(Assembly, BiasesWidenExactly) {
  Fixture f(W13Order::kHalves);
  f.model.bias_dtype = DType::kF32;
  f.slice.padded.intermediate_size = 96;
  f.layer.slots[static_cast<size_t>(Slot::kW13Bias)].dtype = DType::kBF16;
  const Assembly assembly = make_assembly(f.model, f.layer, Slot::kW13Bias, f.slice);
  std::vector<uint16_t> in(128);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint16_t>(0x3F80 + i);
  const auto out = run(assembly, raw(in));
  std::vector<uint32_t> words(out.size() / 4);
  std::memcpy(words.data(), out.data(), out.size());
  ASSERT_EQ(words.size(), 192U);
  EXPECT_EQ(words[5], 0x3F850000U);
  EXPECT_EQ(words[64], 0U);
  EXPECT_EQ(words[96], 0x3FC00000U);
}

TEST(Assembly, OfAnotherLayersSliceIsRefused) {
  for (const W13Order order : {W13Order::kInterleaved, W13Order::kHalves}) {
    for (const Slot slot : {Slot::kW13Weight, Slot::kW2Weight, Slot::kW13WeightScale}) {
      Fixture past_the_end(order);
      past_the_end.slice.begin = 32;
      past_the_end.slice.end = 96;
      Fixture too_long(order);
      too_long.slice.padded.intermediate_size = 32;
      Fixture too_wide(order);
      too_wide.slice.padded.hidden_size = 32;
      for (const Fixture& f : {past_the_end, too_long, too_wide}) {
        EXPECT_THROW((void)make_assembly(f.model, f.layer, slot, f.slice), Error);
      }
    }
  }
}

}  // namespace
}  // namespace mxfp4
