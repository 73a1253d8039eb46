// What a consumer of blobs refuses, and how shards become one manifest.
#include "formats/blob/manifest.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "formats/blob/blob_writer.hpp"
#include "formats/blob/shard_manifest.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

Manifest sample(std::vector<int64_t> layers = {0, 1}) {
  Manifest manifest;
  manifest.tool_version = "1.0";
  manifest.revision = "some-revision";
  manifest.layout = "some/layout";
  manifest.decision.backend = Backend::MARLIN;
  manifest.decision.trace.push_back({"MarlinExperts", "key", true, ""});
  manifest.decision.trace.push_back({"Other", std::nullopt, false, "too old"});
  manifest.target.backend = Backend::MARLIN;
  manifest.target.arch = "sm90";
  manifest.rank.num_ranks = 1;
  manifest.rank.tp_size = 1;
  manifest.rank.ep_size = 1;
  manifest.rank.experts = {0, 1};
  manifest.rank.end = 64;
  manifest.style = "gpt_oss";
  manifest.libzstd = "1.5.4";
  manifest.source.files.emplace_back("model.safetensors", 77);
  manifest.warnings = {"from the plan"};
  for (int64_t index : layers) {
    ManifestLayer layer;
    layer.index = index;
    layer.prefix = "layers." + std::to_string(index);
    layer.file = layer_file_name(index, true);
    layer.size = 100 + index;
    layer.xxh3_128 = "aa";
    layer.hidden_size = 64;
    layer.loaded.dims = {2, 64, 64};
    const std::vector<int64_t> dims{2, 3};
    layer.tensors.push_back(
        {layer.prefix + ".w", {DType::kU8, Shape(std::span(dims))}, "bb", Storage{}});
    manifest.layers.push_back(layer);
  }
  return manifest;
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "no error";
}

// What parse_manifest says of a sound, sealed manifest that `change` was made to.
std::string refusal(const std::function<void(Json&)>& change) {
  Json json = manifest_to_json(sample());
  change(json);
  return message_of([&] { (void)parse_manifest(seal_json(json)); });
}

TEST(Manifest, ReadsWhatItWrote) {
  Manifest manifest = sample();
  manifest.rest.push_back({"config.json", 5, "cc"});
  const std::string text = write_manifest(manifest);
  EXPECT_EQ(write_manifest(parse_manifest(text)), text);
  EXPECT_EQ(parse_manifest(text).rest.at(0).name, "config.json");
}

TEST(Manifest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(refusal([](Json&) {}), "no error");
  EXPECT_EQ(refusal([](Json& json) { json["format"] = "other"; }),
            "format: expected 'mxfp4-repack'");
  EXPECT_EQ(refusal([](Json& json) { json["format_version"] = kFormatVersion + 1; }),
            "format_version: 2 is not known to this program, which knows 1");
  EXPECT_EQ(refusal([](Json& json) { json["target"]["backend"] = "QUANTUM"; }),
            "target.backend: unknown value 'QUANTUM'");
}

TEST(Manifest, HoldsASliceOfItsLayers) {
  const auto rank = [](const char* key, const Json& value) {
    return refusal([&](Json& json) { json["rank"][key] = value; });
  };
  EXPECT_EQ(rank("rank", 1), "rank: rank 1 of 1");
  EXPECT_EQ(rank("tp_size", 0), "rank: tp_rank 0 of 0");
  EXPECT_EQ(rank("ep_rank", 7), "rank: ep_rank 7 of 1");
  EXPECT_EQ(rank("experts", Json::array({1, 0})), "rank: experts: not in ascending order");
  EXPECT_EQ(rank("experts", Json::array({1, 1})), "rank: experts: not in ascending order");
  EXPECT_EQ(rank("experts", Json::array({0, 7})), "no error");
  EXPECT_EQ(rank("experts", Json::array({0})),
            "layers: layer 0: 1 experts, H 64, I 64 of the rank do not fit into 2, 64, 64");
  EXPECT_EQ(rank("intermediate_range", Json::array({0, 96})),
            "layers: layer 0: 2 experts, H 64, I 96 of the rank do not fit into 2, 64, 64");
  EXPECT_EQ(rank("intermediate_range", Json::array({64, 96})), "no error");
  EXPECT_NE(rank("intermediate_range", Json::array({0, 33})), "no error");
  EXPECT_EQ(refusal([](Json& json) { json["layers"][1]["sizes"]["hidden_size"] = 96; }),
            "layers: layer 1: 2 experts, H 96, I 64 of the rank do not fit into 2, 64, 64");
  EXPECT_NE(refusal([](Json& json) { json["layers"][1]["sizes"]["hidden_size"] = 33; }),
            "no error");
  EXPECT_EQ(refusal([](Json& json) { json["model"]["scale_fill"] = 256; }),
            "model.scale_fill: not a byte");
}

TEST(Manifest, NamesFilesOfItsOwnDirectoryOnly) {
  for (const char* name : {"../layer", "/etc/passwd", "", ".hidden", ".."}) {
    EXPECT_NE(refusal([&](Json& json) { json["layers"][0]["file"] = name; }).find("plain file"),
              std::string::npos);
    EXPECT_NE(refusal([&](Json& json) {
                json["rest"] = {{{"file", name}, {"size", 1}, {"xxh3_128", "cc"}}};
              }).find("plain file"),
              std::string::npos);
  }
}

TEST(Manifest, RefusesLayersThatNamesContradict) {
  const auto refused = [](const std::function<void(Manifest&)>& change) {
    Manifest manifest = sample();
    change(manifest);
    return message_of([&] { (void)parse_manifest(write_manifest(manifest)); });
  };
  EXPECT_EQ(refused([](Manifest&) {}), "no error");
  EXPECT_EQ(refused([](Manifest& m) { m.layers[1].index = 0; }), "layers: layer 0 is there twice");
  EXPECT_EQ(refused([](Manifest& m) { m.layers[0].index = 7; }),
            "layers: layer 7 is in \"layer-00000.safetensors.zst\", expected "
            "layer-00007.safetensors");
}

TEST(Manifest, EveryChangedByteIsSeen) {
  const std::string text = write_manifest(sample());
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_THROW((void)parse_manifest(changed), Error) << at;
  }
}

ShardManifest shard(int64_t index, int64_t count, std::vector<int64_t> layers) {
  return {{index, count}, "plan", {"machine", "place", "stamp"},
          {0, 1, 2},      {},     {sample(std::move(layers))}};
}

TEST(MergeShards, IsWhatOneProcessWrites) {
  std::vector<ShardManifest> shards = {shard(1, 2, {1}), shard(0, 2, {0, 2})};
  shards[0].warnings = {"z", "b"};
  shards[1].warnings = {"b", "c"};
  for (ShardManifest& one : shards) one = parse_shard_manifest(write_shard_manifest(one));
  Manifest whole = sample({0, 1, 2});
  for (const char* warning : {"b", "c", "z"}) whole.warnings.emplace_back(warning);
  const std::vector<Manifest> merged = merge_shards(shards);
  ASSERT_EQ(merged.size(), 1);
  EXPECT_EQ(write_manifest(merged[0]), write_manifest(whole));
}

std::string merge_refusal(std::vector<ShardManifest> shards) {
  return message_of([&] { (void)merge_shards(std::move(shards)); });
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

TEST(MergeShards, RefusesASourceThatChanged) {
  ShardManifest other = shard(1, 2, {1});
  other.source.stamp = "later";
  EXPECT_EQ(merge_refusal({shard(0, 2, {0, 2}), other}),
            "shard 0/2 and shard 1/2: the input changed in between");
  // Copies differ in what the stamp is made of.
  other.source.place = "a copy";
  EXPECT_EQ(merge_refusal({shard(0, 2, {0, 2}), other}), "no error");
  other = shard(1, 2, {1});
  other.source = {"another machine", "place", "later"};
  EXPECT_EQ(merge_refusal({shard(0, 2, {0, 2}), other}), "no error");
}

TEST(PlanIdentity, KnowsThePlanButNotTheData) {
  const Manifest manifest = sample();
  Manifest data = manifest;
  data.layers[0].xxh3_128 = "dd";
  data.layers[1].tensors[0].xxh3_128 = "dd";
  data.warnings.emplace_back("from the data");
  EXPECT_EQ(plan_identity({manifest}), plan_identity({data}));
  Manifest plan = manifest;
  plan.source.files[0].second = 78;
  EXPECT_NE(plan_identity({manifest}), plan_identity({plan}));
  plan = manifest;
  plan.compression.level = 2;
  EXPECT_NE(plan_identity({manifest}), plan_identity({plan}));
}

}  // namespace
}  // namespace mxfp4
