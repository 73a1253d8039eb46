// Hand-written tables for the steps and the program that strings them together.
#include "lib/steps/step.hpp"

#include <gtest/gtest.h>

#include "lib/core/error.hpp"
#include "lib/steps/program.hpp"
#include "lib/steps/recodings.hpp"
#include "lib/steps/row_map.hpp"
#include "tests/unit/test_bytes.hpp"

namespace mxfp4 {
namespace {

using test::bytes;

void expect_both_ways(const Step& step, const std::vector<std::byte>& in,
                      const std::vector<std::byte>& want) {
  ASSERT_EQ(step_in_bytes(step), static_cast<int64_t>(in.size()));
  ASSERT_EQ(step_out_bytes(step), static_cast<int64_t>(want.size()));
  std::vector<std::byte> out(want.size(), std::byte{0xEE});
  step_forward(step, in, out);
  EXPECT_EQ(out, want);
  std::vector<std::byte> back(in.size(), std::byte{0xEE});
  step_inverse(step, out, back);
  EXPECT_EQ(back, in);
}

TEST(Step, PermuteTransposesBytes) {
  expect_both_ways(Permute{Unit::kByte, {2, 3}, {1, 0}}, bytes({1, 2, 3, 4, 5, 6}),
                   bytes({1, 4, 2, 5, 3, 6}));
}

TEST(Step, PermuteMovesWholeWords) {
  expect_both_ways(Permute{Unit::kWord16, {2, 2}, {1, 0}}, bytes({1, 2, 3, 4, 5, 6, 7, 8}),
                   bytes({1, 2, 5, 6, 3, 4, 7, 8}));
}

TEST(Step, PermuteTransposesNibbles) {
  // Codes 1 2 3 4 | 5 6 7 8 in two rows become 1 5 2 6 3 7 4 8.
  expect_both_ways(Permute{Unit::kNibble, {2, 4}, {1, 0}}, bytes({0x21, 0x43, 0x65, 0x87}),
                   bytes({0x51, 0x62, 0x73, 0x84}));
}

TEST(Step, PermuteOfThreeAxesWithOnes) {
  expect_both_ways(Permute{Unit::kByte, {2, 1, 2, 2}, {2, 0, 1, 3}},
                   bytes({0, 1, 2, 3, 4, 5, 6, 7}), bytes({0, 1, 4, 5, 2, 3, 6, 7}));
}

TEST(Step, GatherTakesRows) {
  expect_both_ways(GatherRows{2, {2, 0, 1}}, bytes({1, 2, 3, 4, 5, 6}), bytes({5, 6, 1, 2, 3, 4}));
}

TEST(Step, PermutesOfLongRowsAreGathers) {
  const Permute permute{Unit::kWord16, {2, 3, 2, 256}, {1, 0, 2, 3}};
  const auto gather = as_gather(permute);
  ASSERT_TRUE(gather);
  EXPECT_EQ(gather->row_bytes, 1024);
  EXPECT_EQ(gather->source, (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
  std::vector<std::byte> in(static_cast<size_t>(step_in_bytes(permute)));
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(i * 7 / 5);
  std::vector<std::byte> want(in.size());
  step_forward(permute, in, want);
  expect_both_ways(*gather, in, want);

  EXPECT_FALSE(as_gather({Unit::kByte, {2, 3, 511}, {1, 0, 2}}));
  EXPECT_FALSE(as_gather({Unit::kNibble, {2, 512, 3}, {0, 2, 1}}));
  EXPECT_EQ(as_gather({Unit::kByte, {4, 512}, {0, 1}})->source, std::vector<int64_t>{0});
}

TEST(Step, PadFillsAndCrops) {
  expect_both_ways(PadMatrix{2, 2, 3, 3, std::byte{9}}, bytes({1, 2, 3, 4}),
                   bytes({1, 2, 9, 3, 4, 9, 9, 9, 9}));
}

TEST(Step, RecodingsAreExact) {
  expect_both_ways(Recode{&kWidenBf16ToF32, 2}, bytes({0x81, 0xFF, 1, 2}),
                   bytes({0, 0, 0x81, 0xFF, 0, 0, 1, 2}));
  expect_both_ways(Recode{&kE8m0ToF32, 3}, bytes({0, 127, 255}),
                   bytes({0, 0, 0, 0, 0, 0, 0x80, 0x3F, 0, 0, 0x80, 0x7F}));
  // Nibbles 0 9 2 3 c 5 6 7 from the lowest on: the signs of the second and the fifth stay.
  expect_both_ways(Recode{&kMagnitudesApart, 1}, bytes({0x90, 0x32, 0x5C, 0x76}),
                   bytes({0xA0, 0x64, 0x39, 0x75}));
}

TEST(Program, NeighbouringGathersNeedNoRoomBetween) {
  Program program(3);
  program.then(GatherRows{1, {1, 2, 0}}).then(GatherRows{1, {1, 2, 0}});
  ASSERT_EQ(program.scratch_bytes(), 0);
  std::vector<std::byte> out(3);
  program.forward(bytes({1, 2, 3}), out, {});
  EXPECT_EQ(out, bytes({3, 1, 2}));
}

TEST(Program, RunsStepsInOrderAndBack) {
  Program program(4);
  program.then(PadMatrix{2, 2, 2, 4, std::byte{7}}).then(Permute{Unit::kByte, {2, 4}, {1, 0}});
  std::vector<std::byte> scratch(static_cast<size_t>(program.scratch_bytes()));
  std::vector<std::byte> out(8);
  program.forward(bytes({1, 2, 3, 4}), out, scratch);
  EXPECT_EQ(out, bytes({1, 3, 2, 4, 7, 7, 7, 7}));
  std::vector<std::byte> back(4);
  program.inverse(out, back, scratch);
  EXPECT_EQ(back, bytes({1, 2, 3, 4}));
}

TEST(Program, RefusesStepsThatDoNotFit) {
  EXPECT_THROW(Program(3).then(GatherRows{2, {0, 1}}), Error);
}

}  // namespace
}  // namespace mxfp4
