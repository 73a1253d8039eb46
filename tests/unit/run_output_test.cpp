// The combination, the program and their sizes in both directions, on outputs made by hand.
#include "lib/layouts/run_output.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "lib/core/error.hpp"
#include "tests/unit/test_bytes.hpp"

namespace mxfp4 {
namespace {

using test::bytes;

// Two experts a granule; each output byte pair is its own byte plus the bias slot's, then reversed.
Output summed_output() {
  Output output;
  output.name = "w13_weight";
  output.slot = Slot::kW13Weight;
  output.experts_per_granule = 2;
  output.program = Program(4);
  output.program.then(GatherRows{1, {3, 2, 1, 0}}).then(PadMatrix{1, 4, 1, 6, std::byte{9}});
  output.combination.emplace(
      Combination{{Slot::kW13Weight, Slot::kW13Bias},
                  4,
                  [](std::span<const ConstBytes> in, MutableBytes out) {
                    for (size_t i = 0; i < out.size(); ++i) {
                      out[i] = static_cast<std::byte>(std::to_integer<int>(in[0][i]) +
                                                      std::to_integer<int>(in[1][i]));
                    }
                  },
                  {"w13_bias"},
                  [](ConstBytes own, std::span<const ConstBytes> others, MutableBytes out) {
                    for (size_t i = 0; i < out.size(); ++i) {
                      out[i] = static_cast<std::byte>(std::to_integer<int>(own[i]) -
                                                      std::to_integer<int>(others[0][i]));
                    }
                  }});
  return output;
}

TEST(RunOutput, CombinesThenRunsTheProgramAndBack) {
  const Output output = summed_output();
  const auto weight = bytes({1, 2, 3, 4, 5, 6, 7, 8});
  const auto bias = bytes({10, 20, 30, 40, 50, 60, 70, 80});
  SlotBytes layer;
  layer.set(Slot::kW13Weight, weight);
  layer.set(Slot::kW13Bias, bias);
  ASSERT_EQ(granule_count(output, 4), 2);
  ASSERT_EQ(slots_read(output).size(), 2U);

  std::vector<std::byte> scratch(static_cast<size_t>(scratch_bytes(output)));
  std::vector<std::byte> out(6);
  const SlotBytes second = layer.granule(1, 2);
  run_forward(output, second, out, scratch);
  EXPECT_EQ(out, bytes({88, 77, 66, 55, 9, 9}));

  const ConstBytes other = second[Slot::kW13Bias];
  std::vector<std::byte> back(4);
  run_inverse(output, out, {&other, 1}, back, scratch);
  EXPECT_EQ(back, bytes({5, 6, 7, 8}));
}

TEST(RunOutput, ReadsItsOwnSlotWithoutCombine) {
  Output output;
  output.slot = Slot::kW2Bias;
  output.program = Program(2);
  ASSERT_EQ(slots_read(output).size(), 1U);
  EXPECT_EQ(slots_read(output)[0], Slot::kW2Bias);
  EXPECT_EQ(scratch_bytes(output), 0);
  const auto bias = bytes({7, 8});
  SlotBytes granule;
  granule.set(Slot::kW2Bias, bias);
  std::vector<std::byte> out(2);
  run_forward(output, granule, out, {});
  EXPECT_EQ(out, bias);
}

TEST(RunOutput, RefusesSizesThatWereNotPlanned) {
  const Output output = summed_output();
  const auto four = bytes({1, 2, 3, 4});
  SlotBytes granule;
  granule.set(Slot::kW13Weight, four);
  granule.set(Slot::kW13Bias, four);
  std::vector<std::byte> scratch(static_cast<size_t>(scratch_bytes(output)));
  std::vector<std::byte> short_out(5);
  EXPECT_THROW(run_forward(output, granule, short_out, scratch), Error);
  std::vector<std::byte> out(6);
  EXPECT_THROW(run_forward(output, granule, out, MutableBytes(scratch).first(1)), Error);
  std::vector<std::byte> back(4);
  EXPECT_THROW(run_inverse(output, out, {}, back, scratch), Error);
}

}  // namespace
}  // namespace mxfp4
