// Axis permutations against the index formula, on random dimensions that reach every loop of the
// kernel: short and long inner axes, merged axes, runs, nibbles at odd places.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "lib/steps/program.hpp"
#include "tests/golden/drawn_inputs.hpp"

namespace mxfp4::test {
namespace {

unsigned nibble_of(const std::vector<std::byte>& bytes, int64_t at) {
  return std::to_integer<unsigned>(bytes[static_cast<size_t>(at / 2)]) >> (at % 2 * 4) & 15U;
}

// out = in.reshape(dims).permute(order), unit by unit.
std::vector<std::byte> permuted(const Permute& step, const std::vector<std::byte>& in) {
  const size_t rank = step.dims.size();
  std::vector<int64_t> stride(rank, 1);
  for (size_t axis = rank; axis-- > 1;) stride[axis - 1] = stride[axis] * step.dims[axis];
  const int64_t units = stride[0] * step.dims[0];
  std::vector<std::byte> out(in.size());
  for (int64_t at = 0; at < units; ++at) {
    int64_t rest = at;
    int64_t from = 0;
    for (size_t i = rank; i-- > 0;) {
      const auto axis = static_cast<size_t>(step.order[i]);
      from += rest % step.dims[axis] * stride[axis];
      rest /= step.dims[axis];
    }
    if (step.unit == Unit::kNibble) {
      out[static_cast<size_t>(at / 2)] |= static_cast<std::byte>(nibble_of(in, from) << at % 2 * 4);
    } else {
      const int64_t size = unit_bits(step.unit) / 8;
      std::copy_n(in.begin() + from * size, size, out.begin() + at * size);
    }
  }
  return out;
}

void expect_permuted(const Permute& step, uint64_t seed) {
  const std::vector<std::byte> in = drawn_bytes(seed, step_in_bytes(step));
  std::vector<std::byte> out(in.size(), std::byte{0xEE});
  step_forward(step, in, out);
  EXPECT_EQ(first_difference(out, permuted(step, in)), -1);
  std::vector<std::byte> back(in.size(), std::byte{0xEE});
  step_inverse(step, out, back);
  EXPECT_EQ(first_difference(back, in), -1);
}

TEST(Permute, EqualsTheIndexFormulaOnRandomAxes) {
  std::mt19937_64 random(20);
  const int64_t sizes[] = {1, 2, 2, 3, 4, 5, 8, 40, 70};
  for (int round = 0; round < 400; ++round) {
    Permute step;
    step.unit = std::array{Unit::kNibble, Unit::kByte, Unit::kWord16, Unit::kWord32}[round % 4];
    int64_t units = 1;
    const size_t rank = 1 + random() % 7;
    while (step.dims.size() < rank) {
      const int64_t size = sizes[random() % std::size(sizes)];
      if (units * size > 40000) break;
      units *= size;
      step.dims.push_back(size);
    }
    step.order.resize(step.dims.size());
    std::iota(step.order.begin(), step.order.end(), 0);
    std::ranges::shuffle(step.order, random);
    if (step.unit == Unit::kNibble) {
      // Both directions write whole bytes: the innermost axes of input and output are even.
      step.dims.back() = 2 + 2 * static_cast<int64_t>(random() % 3);
      step.dims[static_cast<size_t>(step.order.back())] =
          2 + 2 * static_cast<int64_t>(random() % 20);
    }
    SCOPED_TRACE(testing::Message()
                 << "round " << round << ", dims " << testing::PrintToString(step.dims)
                 << ", order " << testing::PrintToString(step.order));
    expect_permuted(step, random());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace mxfp4::test
