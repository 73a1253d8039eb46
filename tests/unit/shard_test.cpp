// How layers are shared out among processes.
#include "lib/plan/shard.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace mxfp4 {
namespace {

using Numbers = std::vector<int64_t>;

Numbers loads(const Numbers& bytes, const Numbers& assigned, int64_t shards) {
  Numbers out(static_cast<size_t>(shards), 0);
  for (size_t i = 0; i < bytes.size(); ++i) out[static_cast<size_t>(assigned[i])] += bytes[i];
  return out;
}

TEST(AssignShards, LargestFirst) {
  EXPECT_EQ(assign_shards(Numbers{1, 2, 3, 6}, 2), (Numbers{1, 1, 1, 0}));
}

TEST(AssignShards, MoreShardsThanLayers) {
  EXPECT_EQ(assign_shards(Numbers{7, 9}, 1'000'000'000'000), (Numbers{1, 0}));
  EXPECT_TRUE(assign_shards(Numbers{}, 4).empty());
}

TEST(AssignShards, NoShardIsMoreThanALayerAboveTheMean) {
  std::mt19937_64 random(20261121);
  for (int round = 0; round < 200; ++round) {
    Numbers bytes(1 + random() % 40);
    for (int64_t& b : bytes) b = static_cast<int64_t>(random() % 1000);
    const auto shards = static_cast<int64_t>(1 + random() % 9);
    const Numbers assigned = assign_shards(bytes, shards);
    EXPECT_EQ(assigned, assign_shards(bytes, shards));
    const Numbers load = loads(bytes, assigned, shards);
    const int64_t total = std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
    EXPECT_EQ(std::accumulate(load.begin(), load.end(), int64_t{0}), total);
    EXPECT_LE(*std::ranges::max_element(load),
              total / shards + *std::ranges::max_element(bytes) + 1);
  }
}

}  // namespace
}  // namespace mxfp4
