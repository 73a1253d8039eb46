// Every layout's weights and large scales run by the code of a row of kTileRows, not by the code
// for any shape, and every row has a user.
#include "lib/kernels/tile_shapes.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "lib/revisions/revisions.hpp"
#include "lib/steps/schedule.hpp"
#include "tests/property/target_space.hpp"

namespace mxfp4::test {
namespace {

constexpr LayerDims kModelSizes[] = {
    {1, 2880, 2880}, {1, 4096, 3072}, {1, 7168, 2048}, {1, 6144, 1536}};
constexpr int64_t kLarge = 256 << 10;  // bytes of an expert

void check_schedule(const Schedule& schedule, std::set<size_t>& used) {
  for (const Kernel& kernel : schedule.kernels) {
    const auto* plan = std::get_if<kernels::TilePlan>(&kernel);
    if (plan == nullptr) continue;
    EXPECT_TRUE(plan->row.has_value());
    if (plan->row) used.insert(*plan->row);
  }
}

void check_row(const RuleSet& rules, const LayoutRow& row, const LayerDims& sizes,
               std::set<size_t>& used) {
  const auto input = first_input_of(rules, row, sizes);
  if (!input) return;
  for (const Output& output : make_outputs(*row.layout, *input)) {
    if (output.program.in_bytes() < kLarge) continue;
    SCOPED_TRACE(fmt::format("{} {}", id_of(*row.layout), output.name));
    check_schedule(output.program.schedule(Direction::kForward), used);
    check_schedule(output.program.schedule(Direction::kInverse), used);
  }
}

TEST(TileRows, ServeEveryLayoutAndNothingElse) {
  std::set<size_t> used;
  for (const LayerDims& sizes : kModelSizes) {
    for (const RuleSet* rules : all_revisions()) {
      for (const LayoutRow& row : rules->layouts) {
        if (row.layout != nullptr) check_row(*rules, row, sizes, used);
      }
    }
  }
  for (size_t row = 0; row < std::size(kernels::kTileRows); ++row) {
    EXPECT_TRUE(used.contains(row)) << kernels::kTileRows[row].name << ": no layout takes it";
  }
}

}  // namespace
}  // namespace mxfp4::test
