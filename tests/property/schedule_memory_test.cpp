// The memory of every layout's schedules is within the bound that a run reckons with beforehand.
#include <gtest/gtest.h>

#include "lib/layouts/all_layouts.hpp"
#include "lib/layouts/run_output.hpp"
#include "tests/property/target_space.hpp"

namespace mxfp4::test {
namespace {

constexpr LayerDims kSizes = {1, 2880, 2880};

TEST(ScheduleMemory, IsWithinTheBound) {
  const LayerDims few_columns = {1, 32, 1 << 15};
  const LayerDims few_rows = {1, 1 << 15, 32};
  for (const LayerDims& sizes : {kSizes, few_columns, few_rows}) {
    const auto inputs = inputs_of(sizes);
    EXPECT_GE(inputs.size(), all_layouts().size() / 2);  // some refuse odd sizes
    for (const auto& [layout, input] : inputs) {
      for (const Output& output : make_outputs(*layout, input)) {
        const Output* const one = &output;
        for (const Direction direction : {Direction::kForward, Direction::kInverse}) {
          const ScheduleBytes bytes = schedule_bytes({&one, 1}, direction);
          const ScheduleBytes most = most_schedule_bytes({&one, 1});
          EXPECT_TRUE(bytes.tables <= most.tables && bytes.scratch <= most.scratch)
              << id_of(*layout) << ' ' << output.name << ", I " << sizes.intermediate_size << ": "
              << bytes.tables << " of " << most.tables << ", " << bytes.scratch << " of "
              << most.scratch;
        }
      }
    }
  }
}

}  // namespace
}  // namespace mxfp4::test
