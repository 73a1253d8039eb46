// Programs equal their steps run one by one, which are the definition: for every instruction set of
// this machine, on sizes that take the fast forms and on those that do not, at odd addresses, and
// past the caches.
#include "lib/steps/program.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "lib/kernels/instruction_sets.hpp"
#include "lib/layouts/flashinfer_common.hpp"
#include "lib/layouts/triton_common.hpp"
#include "lib/steps/hopper_value_step.hpp"
#include "lib/steps/lower.hpp"
#include "lib/steps/recodings.hpp"
#include "lib/steps/run_schedule.hpp"
#include "tests/golden/drawn_inputs.hpp"

namespace mxfp4::test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes forward_by_steps(const std::vector<Step>& steps, Bytes in) {
  for (const Step& step : steps) {
    Bytes out(static_cast<size_t>(step_out_bytes(step)));
    step_forward(step, in, out);
    in = std::move(out);
  }
  return in;
}

// `size` bytes that begin `shift` bytes after a line does, with guards on both sides.
class Guarded {
 public:
  Guarded(size_t size, size_t shift) : all_(size + 2 * kLine + shift + 1, kGuard), size_(size) {
    begin_ = kLine - reinterpret_cast<uintptr_t>(all_.data()) % kLine + shift;
  }

  [[nodiscard]] MutableBytes bytes() { return MutableBytes(all_).subspan(begin_, size_); }
  [[nodiscard]] Bytes copy() { return {bytes().begin(), bytes().end()}; }
  [[nodiscard]] bool intact() const {
    return all_[begin_ - 1] == kGuard && all_[begin_ + size_] == kGuard;
  }

 private:
  static constexpr size_t kLine = 64;
  static constexpr std::byte kGuard{0xEE};
  Bytes all_;
  size_t size_;
  size_t begin_;
};

void run(const Schedule& schedule, ConstBytes in, MutableBytes out) {
  Bytes scratch(static_cast<size_t>(schedule.scratch_bytes()), std::byte{0xEE});
  run_schedule(schedule, in, out, scratch);
}

// Both directions of some steps.
struct Schedules {
  Schedule forward, inverse;
};

Schedules schedules_of(const std::vector<Step>& steps, const LowerOptions& options) {
  const int64_t in_bytes = step_in_bytes(steps.front());
  return {lower(steps, in_bytes, Direction::kForward, options),
          lower(steps, in_bytes, Direction::kInverse, options)};
}

void expect_equal(const std::vector<Step>& steps, uint64_t seed) {
  const Schedules usual = schedules_of(steps, {});
  const Schedules streaming = schedules_of(steps, {.stream_from = 0});  // small outputs too
  const Bytes in = drawn_bytes(seed, usual.forward.in_bytes + 1);
  const ConstBytes odd = ConstBytes(in).subspan(1);
  const Bytes source(odd.begin(), odd.end());
  const Bytes want = forward_by_steps(steps, source);
  for (size_t shift : {0, 1, 32}) {
    SCOPED_TRACE(testing::Message() << "output shifted by " << shift);
    const Schedules& schedules = shift == 1 ? usual : streaming;
    Guarded out(want.size(), shift);
    run(schedules.forward, odd, out.bytes());
    EXPECT_EQ(first_difference(out.copy(), want), -1);
    EXPECT_TRUE(out.intact());
    Guarded back(odd.size(), shift);
    run(schedules.inverse, out.bytes(), back.bytes());
    EXPECT_EQ(first_difference(back.copy(), source), -1);
    EXPECT_TRUE(back.intact());
  }
}

GatherRows random_rows(int64_t row_bytes, int64_t rows, std::mt19937_64& random) {
  GatherRows gather{row_bytes, std::vector<int64_t>(static_cast<size_t>(rows))};
  std::iota(gather.source.begin(), gather.source.end(), 0);
  std::ranges::shuffle(gather.source, random);
  return gather;
}

// All odd rows, then all even ones: strips of either half are evenly spaced, but for the last
// `mixed` rows, which come in reverse order.
GatherRows odd_rows_first(int64_t row_bytes, int64_t rows, int64_t mixed) {
  GatherRows gather{row_bytes, {}};
  for (int64_t row = 1; row < rows; row += 2) gather.source.push_back(row);
  for (int64_t row = 0; row < rows; row += 2) gather.source.push_back(row);
  std::reverse(gather.source.end() - mixed, gather.source.end());
  return gather;
}

// Axis permutations of n rows of k nibbles, as tensor-core layouts use them.
std::vector<Permute> tensor_core_permutes(int64_t n, int64_t k) {
  return {
      {Unit::kNibble, {n / 64, 4, 2, 8, k / 16, 2, 4, 2}, {4, 0, 3, 6, 1, 7, 2, 5}},
      {Unit::kNibble, {n / 64, 4, 2, 8, k / 16, 2, 4, 2}, {4, 0, 3, 6, 1, 7, 5, 2}},
      {Unit::kNibble, {n / 32, 4, 8, k / 32, 2, 4, 4}, {3, 0, 2, 5, 1, 6, 4}},
      {Unit::kNibble, {n / 32, 2, 16, k / 2, 2}, {0, 3, 2, 4, 1}},
      {Unit::kNibble, {n / 16, 2, 8, k / 64, 2, 2, 2, 2, 2, 2}, {0, 5, 2, 3, 4, 7, 8, 6, 9, 1}},
      {Unit::kByte, {n / 16, 16, k / 64, 2, 16}, {0, 2, 3, 1, 4}},
      {Unit::kByte, {n, 2, k / 4}, {0, 2, 1}},
      {Unit::kByte, {n / 32, 32, k / 2}, {0, 2, 1}},
      {Unit::kWord32, {n, k / 8}, {1, 0}},
      {Unit::kWord16, {n / 32, 4, 4, 2, k / 4}, {0, 2, 1, 3, 4}},
  };
}

class OnEveryTarget : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(GetParam());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
};

TEST_P(OnEveryTarget, TensorCorePermutesAloneAndAfterRows) {
  std::mt19937_64 random(11);
  for (const auto& [n, k] :
       {std::pair<int64_t, int64_t>{64, 64}, {128, 256}, {192, 960}, {576, 1216}, {192, 2880}}) {
    for (const Permute& permute : tensor_core_permutes(n, k)) {
      SCOPED_TRACE(testing::Message()
                   << n << " x " << k << ", dims " << testing::PrintToString(permute.dims)
                   << ", order " << testing::PrintToString(permute.order));
      expect_equal({permute}, random());
      expect_equal({random_rows(k / 2, n, random), permute}, random());
      expect_equal({odd_rows_first(k / 2, n, 0), permute}, random());
      expect_equal({odd_rows_first(k / 2, n, n / 3), permute}, random());
      expect_equal({PadMatrix{n - 5, k / 2, n, k / 2, std::byte{3}}, permute}, random());
      expect_equal({PadMatrix{n - 5, k / 2 - 16, n, k / 2, std::byte{127}}, permute}, random());
      expect_equal({random_rows(k / 2 - 16, n - 5, random),
                    PadMatrix{n - 5, k / 2 - 16, n, k / 2, std::byte{1}},
                    random_rows(k / 2, n, random), permute},
                   random());
      if (HasFailure()) return;
    }
  }
}

#ifdef __SANITIZE_THREAD__
constexpr int kRounds = 20;  // one thread: nothing to find, at a fiftieth of the speed
#else
constexpr int kRounds = 600;
#endif

TEST_P(OnEveryTarget, RandomPermutes) {
  std::mt19937_64 random(12);
  constexpr std::array<int64_t, 10> kSizes = {1, 2, 2, 2, 3, 4, 4, 8, 16, 32};
  for (int round = 0; round < kRounds; ++round) {
    Permute step;
    step.unit = std::array{Unit::kNibble, Unit::kByte, Unit::kWord16, Unit::kWord32}[round % 4];
    // Two axes of nibbles grow below, 512 times together.
    const int64_t most = step.unit == Unit::kNibble ? 1000 : 100000;
    int64_t units = 1;
    while (step.dims.size() < 9) {
      const int64_t size = kSizes.at(random() % kSizes.size());
      if (units * size > most) break;
      units *= size;
      step.dims.push_back(size);
    }
    step.order.resize(step.dims.size());
    std::iota(step.order.begin(), step.order.end(), 0);
    std::ranges::shuffle(step.order, random);
    if (step.unit == Unit::kNibble) {
      step.dims.back() = 32;
      step.dims[static_cast<size_t>(step.order.back())] = 16;
    }
    SCOPED_TRACE(testing::Message()
                 << "round " << round << ", dims " << testing::PrintToString(step.dims)
                 << ", order " << testing::PrintToString(step.order));
    expect_equal({step}, random());
    if (HasFailure()) return;
  }
}

// Long enough to be written past the caches.
// Rows of which a tile's last step takes some units again, in the ways of the scales' layouts.
TEST_P(OnEveryTarget, RowsOfOddNumbersOfUnits) {
  std::mt19937_64 random(11);
  for (const int64_t words : {7, 11, 15, 22, 23, 31, 45, 90}) {
    const int64_t blocks = 1 + static_cast<int64_t>(random() % 3);
    const int64_t quads = 2 * words;
    SCOPED_TRACE(testing::Message() << blocks << " blocks of rows of " << words << " words");
    const std::vector<Permute> permutes = {
        {Unit::kByte, {blocks, 4, 32, words, 4}, {0, 3, 2, 1, 4}},
        {Unit::kByte, {2 * blocks, 2, 8, 8, quads, 2}, {0, 2, 4, 1, 3, 5}},
        {Unit::kByte, {blocks, 2, 2, 2, 16, words, 2, 2}, {5, 0, 4, 6, 1, 7, 3, 2}},
        {Unit::kByte, {64 * blocks, words}, {1, 0}},
        {Unit::kNibble, {64 * blocks, 2 * quads}, {1, 0}},
    };
    for (const Permute& permute : permutes) {
      SCOPED_TRACE(testing::PrintToString(permute.dims));
      expect_equal({permute}, random());
    }
    const int64_t rows = blocks * 4 * 32;
    expect_equal({random_rows(4 * words, rows, random), permutes.front()}, random());
  }
}

TEST_P(OnEveryTarget, LargeOutputs) {
  constexpr int64_t kRows = 4096;
  constexpr int64_t kCodes = 3072;
  std::mt19937_64 random(13);
  const Permute tiles = tensor_core_permutes(kRows, kCodes).front();
  expect_equal({random_rows(kCodes / 2, kRows, random), tiles}, random());
  expect_equal({random_rows(kCodes / 2, kRows, random)}, random());

  // Rows of 22.5 lines: the inverse writes parts of lines.
  constexpr int64_t kOddRows = 3072;
  constexpr int64_t kOddCodes = 2880;
  const Permute halves = tensor_core_permutes(kOddRows, kOddCodes).at(3);
  expect_equal({halves}, random());
  expect_equal({odd_rows_first(kOddCodes / 2, kOddRows, 0), halves}, random());

  // Band by band.
  const Permute woven = tensor_core_permutes(kOddRows, kOddCodes).at(6);
  const PadMatrix longer = {kOddRows, kOddCodes / 2, kOddRows, kOddCodes / 2 + 96, std::byte{5}};
  expect_equal({woven, longer}, random());
  expect_equal({woven, hopper_value_step(kOddRows, kOddCodes / 2)}, random());
  expect_equal({longer, Recode{&kE8m0ToF32, step_out_bytes(longer)},
                Permute{Unit::kWord32, {kOddRows, 2, 16, 48}, {0, 3, 2, 1}}},
               random());
}

// The one-pass steps for Hopper's weights equal the plain steps that define them.
TEST_P(OnEveryTarget, HopperStepsEqualTheirDefinitions) {
  constexpr struct {
    Program (*definition)(int64_t rows, int64_t columns);
    Custom (*step)(int64_t rows, int64_t columns);
    int64_t columns;  // the step takes multiples of this
  } kFast[] = {{hopper_value_definition, hopper_value_step, 32},
               {folded_weight_definition, hopper_rows_step, 64}};
  for (const auto& of : kFast) {
    for (const int64_t rows : {0, 16, 32, 80, 256}) {
      for (const int64_t columns : {0, 32, 64, 96, 160, 192, 1440, 1472}) {
        if (columns % of.columns != 0) continue;
        SCOPED_TRACE(testing::Message() << rows << " x " << columns);
        const Program plain = of.definition(rows, columns);
        const Step fast = of.step(rows, columns);
        const Bytes in = drawn_bytes(static_cast<uint64_t>(rows + columns), rows * columns);
        Bytes want(in.size());
        Bytes got(in.size());
        Bytes scratch(static_cast<size_t>(plain.scratch_bytes()));
        plain.forward(in, want, scratch);
        step_forward(fast, in, got);
        EXPECT_EQ(first_difference(got, want), -1);
        plain.inverse(in, want, scratch);
        step_inverse(fast, in, got);
        EXPECT_EQ(first_difference(got, want), -1);
        if (!in.empty()) expect_equal({fast}, 1);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Program, OnEveryTarget,
                         testing::ValuesIn(kernels::instruction_set_targets()),
                         [](const auto& target) { return hwy::TargetName(target.param); });

}  // namespace
}  // namespace mxfp4::test
