// The word-wise nibble kernel equals permute_nibbles wherever it applies, in both directions.
#include "lib/kernels/nibble_words.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "lib/kernels/permute.hpp"

namespace mxfp4::kernels {
namespace {

struct Case {
  std::vector<int64_t> dims;
  std::vector<int> order;
};

// False when the kernel does not apply.
bool expect_equals_definition(const Case& c, std::mt19937& random) {
  const auto words = nibble_words(c.dims, c.order);
  if (!words) return false;
  const int64_t nibbles =
      std::accumulate(c.dims.begin(), c.dims.end(), int64_t{1}, std::multiplies<>());
  std::vector<std::byte> in(static_cast<size_t>(nibbles / 2));
  for (std::byte& b : in) b = static_cast<std::byte>(random());
  std::vector<std::byte> want(in.size());
  std::vector<std::byte> got(in.size());
  permute_nibbles(permutation_nest(c.dims, c.order, false), in.data(), want.data());
  gather_nibble_words(*words, in.data(), got.data());
  EXPECT_EQ(got, want) << testing::PrintToString(c.dims) << testing::PrintToString(c.order);
  std::vector<std::byte> back(in.size());
  scatter_nibble_words(*words, want.data(), back.data());
  EXPECT_EQ(back, in) << testing::PrintToString(c.dims) << testing::PrintToString(c.order);
  return true;
}

TEST(NibbleWords, CoversTheTensorCoreLayouts) {
  std::mt19937 random(1);
  for (int64_t n = 1; n <= 5; ++n) {
    for (int64_t k = 1; k <= 7; k += 3) {
      const std::vector<int64_t> mma = {n, 4, 2, 8, k, 2, 4, 2};
      EXPECT_TRUE(expect_equals_definition({mma, {4, 0, 3, 6, 1, 7, 2, 5}}, random));
      EXPECT_TRUE(expect_equals_definition({mma, {4, 0, 3, 6, 1, 7, 5, 2}}, random));
      EXPECT_TRUE(expect_equals_definition({{n, 4, 8, k, 2, 4, 4}, {3, 0, 2, 5, 1, 6, 4}}, random));
      EXPECT_TRUE(expect_equals_definition({{n, 2, 16, 16 * k, 2}, {0, 3, 2, 4, 1}}, random));
    }
  }
}

TEST(NibbleWords, LeavesOthersAlone) {
  EXPECT_FALSE(nibble_words({16, 64}, {1, 0}));      // a word takes from eight bytes
  EXPECT_FALSE(nibble_words({2, 2}, {1, 0}));        // less than a word
  EXPECT_FALSE(nibble_words({3, 2, 2}, {0, 2, 1}));  // no whole number of words
}

TEST(NibbleWords, EqualsTheDefinitionOnRandomPermutations) {
  constexpr unsigned kSeed = 20;
  std::mt19937 random(kSeed);
  constexpr std::array<int64_t, 6> kSizes = {1, 2, 2, 3, 4, 8};
  int applied = 0;
  for (int i = 0; i < 3000; ++i) {
    Case c;
    const size_t rank = 2 + random() % 5;
    for (size_t axis = 0; axis + 1 < rank; ++axis) c.dims.push_back(kSizes.at(random() % 6));
    c.dims.push_back(2);
    c.order.resize(rank);
    std::iota(c.order.begin(), c.order.end(), 0);
    std::ranges::shuffle(c.order, random);
    // The nibble axis near the end, so that the kernel applies often.
    std::erase(c.order, static_cast<int>(rank) - 1);
    c.order.insert(c.order.end() - static_cast<ptrdiff_t>(random() % std::min<size_t>(rank, 3)),
                   static_cast<int>(rank) - 1);
    if (permutation_nest(c.dims, c.order, false).size.back() % 2 != 0) continue;
    applied += expect_equals_definition(c, random) ? 1 : 0;
  }
  EXPECT_GT(applied, 200) << "seed " << kSeed;
}

}  // namespace
}  // namespace mxfp4::kernels
