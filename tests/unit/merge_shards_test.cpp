// How shards become one manifest.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/blob/shard_manifest.hpp"
#include "tests/unit/sample_manifest.hpp"

namespace mxfp4 {
namespace {

using test::message_of;
using test::sample_manifest;

ShardManifest shard(int64_t index, int64_t count, std::vector<int64_t> layers) {
  return {{index, count},
          plan_identity({sample_manifest({0, 1, 2})}),
          {"machine", "place", "stamp"},
          {0, 1, 2},
          {},
          {sample_manifest(std::move(layers))}};
}

std::string merge_refusal(std::vector<ShardManifest> shards) {
  return message_of([&] { (void)merge_shards(std::move(shards)); });
}

TEST(MergeShards, IsWhatOneProcessWrites) {
  std::vector<ShardManifest> shards = {shard(1, 2, {1}), shard(0, 2, {0, 2})};
  shards[0].warnings = {"z", "b"};
  shards[1].warnings = {"b", "c"};
  for (ShardManifest& one : shards) one = parse_shard_manifest(write_shard_manifest(one));
  Manifest whole = sample_manifest({0, 1, 2});
  for (const char* warning : {"b", "c", "z"}) whole.warnings.emplace_back(warning);
  const std::vector<Manifest> merged = merge_shards(shards);
  ASSERT_EQ(merged.size(), 1);
  EXPECT_EQ(write_manifest(merged[0]), write_manifest(whole));
}

TEST(MergeShards, RefusesGapsOverlapsAndMixtures) {
  EXPECT_EQ(merge_refusal({}), "no shard is complete");
  EXPECT_EQ(merge_refusal({shard(1, 4, {1})}), "1 of 4 shards are complete, missing: 0, 2, 3");
  EXPECT_EQ(merge_refusal({shard(0, 2, {0}), shard(0, 2, {0}), shard(1, 2, {1, 2})}),
            "a shard is there twice");
  EXPECT_EQ(merge_refusal({shard(0, 2, {0, 1}), shard(1, 2, {1, 2})}),
            "rank 0: the shards hold 4 layers, the plan has 3");
  EXPECT_EQ(merge_refusal({shard(0, 2, {0}), shard(1, 2, {1})}),
            "rank 0: the shards hold 2 layers, the plan has 3");
  EXPECT_EQ(merge_refusal({shard(0, 2, {0, 2}), shard(1, 3, {1})}),
            "shard 0/2 and shard 1/3: cut in different numbers of shards");
  ShardManifest other = shard(1, 2, {1});
  other.plan = "another";
  EXPECT_EQ(merge_refusal({shard(0, 2, {0, 2}), other}),
            "shard 0/2 and shard 1/2: made from different plans");
}

// Records that somebody changed and sealed again: any fact of any shard.
TEST(MergeShards, RefusesFactsThatAreNotThePlans) {
  using Change = std::function<void(Manifest&)>;
  const std::vector<Change> changes = {
      [](Manifest& m) { m.tool_version = "9.9.9"; },
      [](Manifest& m) { m.libzstd = "9.9.9"; },
      [](Manifest& m) { m.vllm_commit = std::string(40, '0'); },
      [](Manifest& m) { m.target.backend = Backend::CPU; },
      [](Manifest& m) { m.rank.end += 32; },
      [](Manifest& m) { m.compression.level = 7; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    for (const bool both : {false, true}) {
      std::vector<ShardManifest> shards = {shard(0, 2, {0, 2}), shard(1, 2, {1})};
      changes[i](shards[0].ranks[0]);
      if (both) changes[i](shards[1].ranks[0]);
      const std::string refusal = merge_refusal(shards);
      EXPECT_TRUE(both ? refusal == "the shards' records do not have the facts of their plan"
                       : refusal.starts_with("shard 0/2 and shard 1/2: ") &&
                             refusal.ends_with(": not the same"))
          << i << ": " << refusal;
    }
  }
}

TEST(MergeShards, RefusesASourceThatChanged) {
  ShardManifest other = shard(1, 2, {1});
  other.source.stamp = "later";
  EXPECT_EQ(merge_refusal({shard(0, 2, {0, 2}), other}),
            "shard 0/2 and shard 1/2: the input changed in between");
  // Sources at other places have other stamps, although nothing changed.
  other.source.place = "a copy";
  EXPECT_EQ(merge_refusal({shard(0, 2, {0, 2}), other}), "no error");
  other = shard(1, 2, {1});
  other.source = {"another machine", "place", "later"};
  EXPECT_EQ(merge_refusal({shard(0, 2, {0, 2}), other}), "no error");
}

TEST(PlanIdentity, KnowsThePlanButNotTheData) {
  const Manifest manifest = sample_manifest();
  Manifest data = manifest;
  data.layers[0].xxh3_128 = std::string(32, 'd');
  data.layers[1].tensors[0].xxh3_128 = std::string(32, 'd');
  data.warnings.emplace_back("from the data");
  EXPECT_EQ(plan_identity({manifest}), plan_identity({data}));
  Manifest plan = manifest;
  plan.source.files[0].size = 78;
  EXPECT_NE(plan_identity({manifest}), plan_identity({plan}));
  plan = manifest;
  plan.compression.level = 2;
  EXPECT_NE(plan_identity({manifest}), plan_identity({plan}));
}

}  // namespace
}  // namespace mxfp4
