// The one-pass steps for Hopper's weights equal the plain steps that define them, both ways, also
// on buffers that are not aligned and for every instruction set that this machine has.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "lib/exec/buffer.hpp"
#include "lib/kernels/copy.hpp"
#include "lib/kernels/instruction_sets.hpp"
#include "lib/layouts/flashinfer_common.hpp"
#include "lib/layouts/triton_common.hpp"
#include "lib/steps/hopper_value_step.hpp"

namespace mxfp4 {
namespace {

using Bytes = std::vector<std::byte>;

Bytes some_bytes(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(static_cast<size_t>(count));
  for (std::byte& b : bytes) b = static_cast<std::byte>(random() & 0xFFU);
  return bytes;
}

struct FastStep {
  const char* name;
  Program (*definition)(int64_t rows, int64_t columns);
  Custom (*step)(int64_t rows, int64_t columns);
  int64_t columns;  // the step takes multiples of this
};

constexpr FastStep kFastSteps[] = {
    {"value swizzle", hopper_value_definition, hopper_value_step, 32},
    {"row interleave", folded_weight_definition, hopper_rows_step, 64},
};

void expect_equal(const FastStep& of, int64_t rows, int64_t columns, unsigned seed) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
  const Program plain = of.definition(rows, columns);
  const Step fast = of.step(rows, columns);
  const auto size = static_cast<size_t>(rows * columns);
  ASSERT_EQ(step_in_bytes(fast), plain.in_bytes());
  ASSERT_EQ(step_out_bytes(fast), plain.out_bytes());
  const Bytes in = some_bytes(rows * columns + 1, seed);
  const ConstBytes odd = ConstBytes(in).subspan(1);
  Bytes scratch(static_cast<size_t>(plain.scratch_bytes()));
  Bytes want(size + 1, std::byte{0xEE});
  Bytes got(size + 1, std::byte{0xEE});

  plain.forward(odd, MutableBytes(want).subspan(1), scratch);
  step_forward(fast, odd, MutableBytes(got).subspan(1));
  EXPECT_EQ(got, want) << "forward";

  plain.inverse(odd, MutableBytes(want).subspan(1), scratch);
  step_inverse(fast, odd, MutableBytes(got).subspan(1));
  EXPECT_EQ(got, want) << "inverse";
}

// Compares outputs that go past the caches, to whole lines.
void expect_equal_streamed(const FastStep& of, int64_t rows, int64_t columns, unsigned seed) {
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
  const Custom fast = of.step(rows, columns);
  const auto size = static_cast<size_t>(rows * columns);
  const Bytes in = some_bytes(rows * columns, seed);
  Bytes want(size);
  step_forward(Step(fast), in, want);
  Buffer packed;
  const MutableBytes out = packed.get(rows * columns);
  fast.forward(in, true, out);
  kernels::finish_streaming();
  EXPECT_TRUE(std::ranges::equal(out, want)) << "forward";

  Buffer unpacked;
  const MutableBytes back = unpacked.get(rows * columns);
  fast.inverse(out, true, back);
  kernels::finish_streaming();
  EXPECT_TRUE(std::ranges::equal(back, in)) << "inverse";
}

void expect_all_equal(const FastStep& of) {
  SCOPED_TRACE(of.name);
  unsigned seed = 1;
  for (int64_t rows : {0, 16, 32, 80, 256}) {
    for (int64_t columns : {0, 32, 64, 96, 160, 192, 1440, 1472}) {
      if (columns % of.columns != 0) continue;
      expect_equal(of, rows, columns, seed++);
      if (columns > 0 && columns < 200) expect_equal_streamed(of, rows, columns, seed++);
    }
  }
}

TEST(HopperSteps, EqualTheirDefinitionsOnEveryTarget) {
  const std::vector<int64_t> targets = kernels::instruction_set_targets();
  ASSERT_FALSE(targets.empty());
  for (int64_t target : targets) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    for (const FastStep& of : kFastSteps) expect_all_equal(of);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace
}  // namespace mxfp4
