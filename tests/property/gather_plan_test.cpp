// The GPU's kernel, compiled for this machine, over every layout: what its plan gives is what the
// program gives. A plan that lies is refused, or stays inside of its tensors.
#include "lib/steps/gather_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include "lib/kernels/gather_source.h"
#include "lib/revisions/revisions.hpp"
#include "tests/golden/drawn_inputs.hpp"
#include "tests/property/target_space.hpp"

namespace mxfp4::test {
namespace {

constexpr std::byte kGuard{0xC7};
constexpr int64_t kGuardBytes = 4096;
constexpr int64_t kGranules = 5;  // four at once, and one more

std::vector<std::byte> by_program(const Program& program, ConstBytes in) {
  std::vector<std::byte> out(static_cast<size_t>(program.out_bytes()));
  std::vector<std::byte> scratch(static_cast<size_t>(program.scratch_bytes(Direction::kForward)));
  program.forward(in, out, scratch);
  return out;
}

// The kernel on this machine, for the granules that `out` has room for. Requires is_sound().
void run_gather_plan(std::span<const uint32_t> plan, ConstBytes in, MutableBytes out) {
  const uint32_t granules = static_cast<uint32_t>(out.size()) / plan[kGatherOutBytes];
  gather_granules(plan.data(), reinterpret_cast<const unsigned char*>(in.data()),
                  plan[kGatherInBytes], reinterpret_cast<unsigned char*>(out.data()),
                  plan[kGatherOutBytes], granules, 0, 1);
}

// What the plan makes, with guards around that must be untouched.
std::vector<std::byte> by_plan(const GatherPlan& plan, ConstBytes in, int64_t out_bytes) {
  std::vector<std::byte> room(static_cast<size_t>(out_bytes + 2 * kGuardBytes), kGuard);
  const auto out = MutableBytes(room).subspan(kGuardBytes, static_cast<size_t>(out_bytes));
  // Of its exact size, so that a sanitizer sees what is read outside.
  const std::vector<std::byte> exact(in.begin(), in.end());
  const GatherPlan words(plan.begin(), plan.end());
  run_gather_plan(words, exact, out);
  const auto untouched = [](ConstBytes guard) {
    return std::ranges::all_of(guard, [](std::byte b) { return b == kGuard; });
  };
  EXPECT_TRUE(untouched(ConstBytes(room).first(kGuardBytes)));
  EXPECT_TRUE(untouched(ConstBytes(room).last(kGuardBytes)));
  return {out.begin(), out.end()};
}

// Calls `of(layout, output)` for the outputs of each layout row that has a plan of its own.
template <class Of>
void for_outputs(const Of& of) {
  for (const LayerDims sizes : {LayerDims{2, 64, 64}, LayerDims{1, 96, 160}, LayerDims{2, 288, 96},
                                LayerDims{1, 512, 256}}) {
    std::set<std::pair<const Layout*, std::string>> seen;
    for (const RuleSet* rules : all_revisions()) {
      for (const LayoutRow& row : rules->layouts) {
        if (row.layout == nullptr) continue;
        const auto input = first_input_of(*rules, row, sizes);
        if (!input) continue;
        std::string parameters;
        for (const auto& [name, value] : parameters_of(*row.layout, input->parameters)) {
          parameters += value + " ";
        }
        if (!seen.insert({row.layout, parameters}).second) continue;
        for (const Output& output : make_outputs(*row.layout, *input)) of(*row.layout, output);
      }
    }
  }
}

TEST(GatherPlan, GivesWhatTheProgramGives) {
  std::set<std::string> on_cpus;
  int plans = 0;
  std::set<std::pair<uint32_t, uint32_t>> ways;  // words, places
  for_outputs([&](const Layout& layout, const Output& output) {
    const Program& program = output.program;
    if (program.out_bytes() == 0) return;
    const auto plan = gather_plan(program);
    if (!plan) {
      on_cpus.insert(std::string(id_of(layout)) + " " + output.name);
      return;
    }
    ++plans;
    const auto in = drawn_bytes(7, kGranules * program.in_bytes());
    std::vector<std::byte> want;
    for (int64_t granule = 0; granule < kGranules; ++granule) {
      const auto size = static_cast<size_t>(program.in_bytes());
      const auto made =
          by_program(program, ConstBytes(in).subspan(static_cast<size_t>(granule) * size, size));
      want.insert(want.end(), made.begin(), made.end());
    }
    GatherPlan slow = *plan;
    slow[kGatherWords] = 0;
    ways.insert({(*plan)[kGatherWords], (*plan)[kGatherPlaces]});
    for (const GatherPlan& words : {*plan, slow}) {
      EXPECT_TRUE(by_plan(words, in, kGranules * program.out_bytes()) == want)
          << id_of(layout) << " " << output.name;
    }
  });
  EXPECT_GT(plans, 100);
  EXPECT_EQ(ways.size(), 5);
  std::string names;
  for (const std::string& name : on_cpus) names += name + "\n";
  EXPECT_EQ(names, "");
}

// Rows and columns of a larger matrix, some rows filled.
TEST(GatherPlan, BeginsWithStoredRows) {
  std::mt19937 random(2);
  int quick = 0;
  for_outputs([&](const Layout& layout, const Output& output) {
    const Program& program = output.program;
    if (program.out_bytes() == 0) return;
    const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % (end + 1)); };
    TakenRows taken;
    const int64_t rows = std::gcd(program.in_bytes(), int64_t{32});
    const int64_t even = random() % 2 == 0 ? 1 : 4;
    taken.row_bytes = program.in_bytes() / rows;
    taken.columns = taken.row_bytes - below(taken.row_bytes / 8 / even) * even;
    taken.first = below(8) * even;
    taken.stored_row_bytes = taken.first + taken.columns + below(4) * even;
    taken.stored_rows = rows + below(5);
    taken.fill = std::byte{0x7F};
    for (int64_t row = 0; row < rows; ++row) taken.source.push_back(below(taken.stored_rows) - 1);
    const auto stored = drawn_bytes(7, taken.stored_rows * taken.stored_row_bytes);
    std::vector<std::byte> in(static_cast<size_t>(program.in_bytes()), taken.fill);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t from = taken.source[static_cast<size_t>(row)];
      if (from == TakenRows::kFilled) continue;
      std::copy_n(stored.begin() + from * taken.stored_row_bytes + taken.first, taken.columns,
                  in.begin() + row * taken.row_bytes);
    }
    const auto plan = gather_plan(program, &taken);
    ASSERT_TRUE(plan);
    quick += quick_bytes(*plan) > 0 ? 1 : 0;
    EXPECT_TRUE(by_plan(*plan, stored, program.out_bytes()) == by_program(program, in))
        << id_of(layout) << " " << output.name;
    taken.source.back() = taken.stored_rows;
    EXPECT_FALSE(gather_plan(program, &taken));
  });
  EXPECT_GT(quick, 100);
}

// Words that are changed: refused, or nothing outside is written or read.
TEST(GatherPlan, LiesStayInside) {
  std::mt19937 random(1);
  int refused = 0;
  int run = 0;
  for_outputs([&](const Layout&, const Output& output) {
    const Program& program = output.program;
    if (program.out_bytes() == 0 || program.out_bytes() > 40000) return;
    const auto plan = gather_plan(program);
    if (!plan) return;
    const auto in = drawn_bytes(7, program.in_bytes());
    for (int mutant = 0; mutant < 30; ++mutant) {
      GatherPlan changed = *plan;
      const auto near = random() % std::min<size_t>(changed.size(), 64);  // to either end
      uint32_t& word = changed[mutant % 2 == 0 ? near : changed.size() - 1 - near];
      const uint32_t values[] = {
          0, 1, word + 1, word - 1, word * 2, word ^ 1U << random() % 32, 0xFFFFFFFFU};
      word = values[random() % std::size(values)];
      if (!is_sound(changed, program.in_bytes(), program.out_bytes())) {
        ++refused;
        continue;
      }
      ++run;
      (void)by_plan(changed, in, program.out_bytes());
    }
  });
  EXPECT_GT(refused, 100);
  EXPECT_GT(run, 10);
}

}  // namespace
}  // namespace mxfp4::test
