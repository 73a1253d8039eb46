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

TEST(AssignShards, EqualLayersGoRound) {
  EXPECT_EQ(assign_shards(Numbers{5, 5, 5, 5, 5}, 2), (Numbers{0, 1, 0, 1, 0}));
  EXPECT_EQ(assign_shards(Numbers{5, 5, 5}, 1), (Numbers{0, 0, 0}));
}

TEST(AssignShards, LargestFirst) {
  EXPECT_EQ(assign_shards(Numbers{1, 2, 3, 6}, 2), (Numbers{1, 1, 1, 0}));
}

TEST(AssignShards, EmptyLayersAreSpreadToo) {
  EXPECT_EQ(assign_shards(Numbers{0, 0, 0, 0}, 2), (Numbers{0, 1, 0, 1}));
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

// Two layers in two ranks: files by layer, then rank; one job a layer with a piece for each rank.
Plan two_layer_plan() {
  Plan plan;
  plan.ranks.resize(2);
  for (size_t layer = 0; layer < 2; ++layer) {
    Job job;
    for (size_t rank = 0; rank < 2; ++rank) {
      job.pieces.push_back({plan.files.size(), 0, 0, 3});
      PlannedFile file;
      file.layer = layer;
      file.rank = rank;
      file.data_bytes = 30;
      file.tensors.resize(1);
      file.tensors[0].granule_bytes = 10;
      plan.files.push_back(file);
    }
    plan.jobs.push_back(job);
  }
  return plan;
}

TEST(FilesOfShard, RanksOfALayerStayTogether) {
  const Plan plan = two_layer_plan();
  EXPECT_EQ(files_of_shard(plan, {0, 2}), (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(files_of_shard(plan, {1, 2}), (std::vector<bool>{false, false, true, true}));
  EXPECT_EQ(files_of_shard(plan, {2, 3}), (std::vector<bool>{false, false, false, false}));
}

TEST(KeepJobs, DropsPiecesAndEmptyJobs) {
  Plan plan = two_layer_plan();
  EXPECT_EQ(job_bytes(plan), 120);
  keep_jobs(plan, {false, true, false, false});
  ASSERT_EQ(plan.jobs.size(), 1);
  ASSERT_EQ(plan.jobs[0].pieces.size(), 1);
  EXPECT_EQ(plan.jobs[0].pieces[0].file, 1);
  EXPECT_EQ(plan.files.size(), 4);
  EXPECT_EQ(job_bytes(plan), 30);
}

}  // namespace
}  // namespace mxfp4
