// What a consumer of blobs refuses, and how shards become one manifest.
#include "formats/blob/manifest.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "formats/blob/blob_check.hpp"
#include "formats/blob/blob_writer.hpp"
#include "formats/blob/layout_facts.hpp"
#include "formats/blob/shard_manifest.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/os/file.hpp"
#include "lib/core/error.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/testdata.hpp"

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
    layer.xxh3_128 = std::string(32, 'a');
    layer.hidden_size = 64;
    layer.loaded.dims = {2, 64, 64};
    const std::vector<int64_t> dims{2, 3};
    layer.tensors.push_back({layer.prefix + ".w",
                             {DType::kU8, Shape(std::span(dims))},
                             std::string(32, 'b'),
                             Storage{}});
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

// The message of parse_manifest for a sound manifest after `change`, sealed again.
std::string manifest_refusal(const std::function<void(Json&)>& change) {
  Json changed = manifest_to_json(sample());
  change(changed);
  return message_of([&] { (void)parse_manifest(seal_json(changed)); });
}

TEST(Manifest, ReadsWhatItWrote) {
  Manifest manifest = sample();
  manifest.rest.push_back({"config.json", 5, std::string(32, 'c')});
  const std::string text = write_manifest(manifest);
  EXPECT_EQ(write_manifest(parse_manifest(text)), text);
  EXPECT_EQ(parse_manifest(text).rest.at(0).name, "config.json");
}

TEST(Manifest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(manifest_refusal([](Json&) {}), "no error");
  EXPECT_EQ(manifest_refusal([](Json& changed) { changed["format"] = "other"; }),
            "format: expected 'mxfp4-repack'");
  EXPECT_EQ(manifest_refusal([](Json& changed) { changed["format_version"] = kFormatVersion + 1; }),
            "format_version: 2 is not known to this program, which knows 1");
  EXPECT_EQ(manifest_refusal([](Json& changed) { changed["target"]["backend"] = "QUANTUM"; }),
            "target.backend: unknown value 'QUANTUM'");
}

TEST(Manifest, HoldsASliceOfItsLayers) {
  const auto rank = [](const char* key, const Json& value) {
    return manifest_refusal([&](Json& changed) { changed["rank"][key] = value; });
  };
  EXPECT_EQ(rank("rank", 1), "rank: rank 1 of 1");
  EXPECT_EQ(rank("tp_size", 0), "rank: tp_rank 0 of 0");
  EXPECT_EQ(rank("ep_rank", 7), "rank: ep_rank 7 of 1");
  EXPECT_EQ(rank("experts", Json::array({1, 0})), "rank: experts: not in ascending order");
  EXPECT_EQ(rank("experts", Json::array({1, 1})), "rank: experts: not in ascending order");
  EXPECT_EQ(rank("experts", Json::array({0, 7})), "no error");
  EXPECT_EQ(rank("experts", Json::array({0})),
            "layers: layer 0: E 1, H 64, I 64; the padded sizes are E 2, H 64, I 64");
  EXPECT_EQ(rank("intermediate_range", Json::array({0, 96})),
            "layers: layer 0: E 2, H 64, I 96; the padded sizes are E 2, H 64, I 64");
  EXPECT_EQ(rank("intermediate_range", Json::array({64, 128})), "no error");
  EXPECT_EQ(rank("intermediate_range", Json::array({64, 96})),
            "line 80: \"        \"intermediate_size\": 64,\", this program would write "
            "\"        \"intermediate_size\": 32,\"");
  EXPECT_NE(rank("intermediate_range", Json::array({0, 33})), "no error");
  EXPECT_EQ(
      manifest_refusal([](Json& changed) { changed["layers"][1]["sizes"]["hidden_size"] = 96; }),
      "layers: layer 1: E 2, H 96, I 64; the padded sizes are E 2, H 64, I 64");
  EXPECT_NE(
      manifest_refusal([](Json& changed) { changed["layers"][1]["sizes"]["hidden_size"] = 33; }),
      "no error");
  EXPECT_EQ(manifest_refusal([](Json& changed) { changed["model"]["scale_fill"] = 256; }),
            "model.scale_fill: not a byte");
}

TEST(Manifest, NamesFilesOfItsOwnDirectoryOnly) {
  for (const char* name : {"../layer", "/etc/passwd", "", ".hidden", ".."}) {
    EXPECT_NE(manifest_refusal([&](Json& changed) {
                changed["layers"][0]["file"] = name;
              }).find("plain file"),
              std::string::npos);
    EXPECT_NE(
        manifest_refusal([&](Json& changed) {
          changed["rest"] = {{{"file", name}, {"size", 1}, {"xxh3_128", std::string(32, 'c')}}};
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
            "layer-00007.safetensors.zst");
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
  return {{index, count},
          plan_identity({sample({0, 1, 2})}),
          {"machine", "place", "stamp"},
          {0, 1, 2},
          {},
          {sample(std::move(layers))}};
}

TEST(Manifest, HoldsTheLayoutOfItsRevision) {
  Manifest manifest = sample({});
  manifest.revision = "vllm-2026-05-18";
  manifest.vllm_commit = revision_by_name(manifest.revision).commit;
  manifest.layout = "identity";
  manifest.kernel_library = kernel_library_of(*layout_of(manifest));
  const auto refused = [&] { return message_of([&] { check_layout_facts(manifest); }); };
  EXPECT_EQ(refused(), "layout: \"identity\", expected \"marlin/w4a16\" by vllm-2026-05-18");
  manifest.target.backend = Backend::CPU;
  manifest.target.family = Family::kGeneric;
  EXPECT_EQ(refused(), "layout: \"identity\", but vllm-2026-05-18 defines no layout for CPU");
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

// Records that somebody changed and sealed again: any fact of any shard.
TEST(MergeShards, RefusesFactsThatAreNotThePlans) {
  using Change = std::function<void(Manifest&)>;
  const std::vector<Change> changes = {
      [](Manifest& m) { m.tool_version = "9.9.9"; },
      [](Manifest& m) { m.libzstd = "9.9.9"; },
      [](Manifest& m) { m.vllm_commit = std::string(40, '0'); },
      [](Manifest& m) { m.target.backend = Backend::CPU; },
      [](Manifest& m) { m.rank.end += 32; },
      [](Manifest& m) { m.source.fingerprint = std::string(32, '0'); },
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
  const Manifest manifest = sample();
  Manifest data = manifest;
  data.layers[0].xxh3_128 = std::string(32, 'd');
  data.layers[1].tensors[0].xxh3_128 = std::string(32, 'd');
  data.warnings.emplace_back("from the data");
  EXPECT_EQ(plan_identity({manifest}), plan_identity({data}));
  Manifest plan = manifest;
  plan.source.files[0].second = 78;
  EXPECT_NE(plan_identity({manifest}), plan_identity({plan}));
  plan = manifest;
  plan.compression.level = 2;
  EXPECT_NE(plan_identity({manifest}), plan_identity({plan}));
}

// testdata/mutants/table.json, which tests/python/test_mutants.py goes through too: one changed fact,
// and everything around it made right.
class Mutant {
 public:
  explicit Mutant(const Json& row) {
    manifest_ = Json::parse(read_text_file(kBlob / kManifestName, 1 << 20));
    manifest_.erase("manifest_xxh3_128");
    const std::string layer = read_text_file(kBlob / kLayer, 1 << 20);
    uint64_t length = 0;
    std::memcpy(&length, layer.data(), sizeof length);
    header_ = Json::parse(layer.substr(sizeof length, length));
    data_ = layer.substr(sizeof length + length);
    const std::string in = row.at("in");
    if (in == "manifest" || in == "header") change(in == "header" ? header_ : manifest_, row);
    if (in == "manifest") follow();
    std::string text = header_.dump();
    if (in == "header text") replace(text, row);
    seal(text, row);
  }

  void write(const std::filesystem::path& directory) const {
    std::filesystem::create_directories(directory);
    std::ofstream(directory / kLayer, std::ios::binary) << layer_;
    std::ofstream(directory / kManifestName, std::ios::binary) << text_;
  }

 private:
  static inline const std::filesystem::path kBlob = test::testdata("mutants/blob");
  static constexpr const char* kLayer = "layer-00000.safetensors";

  static void replace(std::string& text, const Json& row) {
    const std::string found = row.at("found");
    const size_t at = text.find(found);
    ASSERT_NE(at, std::string::npos) << row;
    text.replace(at, found.size(), row.at("put").get<std::string>());
  }

  static void change(Json& document, const Json& row) {
    const Json::json_pointer pointer(row.at("at").get<std::string>());
    if (!row.contains("removed")) {
      document[pointer] = row.at("value");
      return;
    }
    Json& parent = document.at(pointer.parent_pointer());
    if (parent.is_array()) {
      parent.erase(static_cast<size_t>(std::stoi(pointer.back())));
    } else {
      parent.erase(pointer.back());
    }
  }

  // Writes to the header what it repeats of the manifest, where the manifest still has that.
  void follow() {
    Json& metadata = header_["__metadata__"];
    const std::vector<std::pair<std::string, const char*>> repeated{
        {"family", "/target/family"},
        {"w13_order", "/model/w13_order"},
        {"mxfp4_repack.revision", "/revision"},
        {"mxfp4_repack.layout", "/layout"},
        {"mxfp4_repack.kernel_library", "/kernel_library"},
        {"mxfp4_repack.target", "/target"},
        {"mxfp4_repack.rank", "/rank"},
        {"mxfp4_repack.sizes", "/layers/0/sizes"}};
    for (const auto& [key, place] : repeated) {
      const Json::json_pointer pointer(place);
      if (!manifest_.contains(pointer)) {
        metadata.erase(key);
        continue;
      }
      const Json& value = manifest_.at(pointer);
      metadata[key] = value.is_string() ? value : Json(value.dump());
    }
    const Json::json_pointer place("/layers/0/tensors");
    if (!manifest_.contains(place)) return;
    Json storage = Json::object();
    Json header = {{"__metadata__", metadata}};
    auto old = std::next(header_.begin());
    for (const Json& tensor : manifest_.at(place)) {
      if (!tensor.contains("storage")) return;
      storage[tensor.at("name").get<std::string>()] = tensor.at("storage");
      Json entry = *old++;
      entry["dtype"] = tensor.at("dtype");
      entry["shape"] = tensor.at("shape");
      header[tensor.at("name").get<std::string>()] = entry;
    }
    header["__metadata__"]["mxfp4_repack.storage"] = storage.dump();
    header_ = header;
  }

  // Puts both files together with the right sizes and checksums, the row's own change aside.
  void seal(std::string header, const Json& row) {
    constexpr size_t kPage = 4096;
    const uint64_t length = (header.size() + 8 + kPage - 1) / kPage * kPage - 8;
    header.resize(length, ' ');
    layer_.assign(reinterpret_cast<const char*>(&length), sizeof length);
    layer_ += header + data_;
    const std::string at = row.value("at", "");
    const auto set = [&](const char* key, const Json& value) {
      const bool there = manifest_.contains("layers") && !manifest_["layers"].empty() &&
                         manifest_["layers"].is_array() && manifest_["layers"][0].is_object();
      if (there && at != fmt::format("/layers/0/{}", key)) manifest_["layers"][0][key] = value;
    };
    set("size", layer_.size());
    set("xxh3_128", checksum_of(layer_));
    std::string text = manifest_.dump(2);
    if (row.at("in") == "manifest text") replace(text, row);
    text.resize(text.rfind("\n}"));
    text_ = fmt::format("{}{}{}\"\n}}\n", text, kManifestSeal, checksum_of(text));
  }

  Json manifest_;
  Json header_;
  std::string data_;
  std::string layer_;
  std::string text_;
};

TEST(Manifest, IsRefusedWhereOneFactIsWrong) {
  const std::filesystem::path scratch = std::filesystem::path(testing::TempDir()) / "mutants";
  const Json rows =
      Json::parse(read_text_file(test::testdata("mutants/table.json"), int64_t{1} << 20));
  EXPECT_GT(rows.size(), 200U);
  for (const Json& row : rows) {
    Mutant(row).write(scratch);
    const std::string said = message_of([&] {
      const Manifest manifest = read_manifest(scratch);
      const std::vector<std::string> findings =
          check_layer_files(scratch, manifest, 1, [](int64_t) {});
      if (!findings.empty()) throw Error::input(findings.front());
    });
    EXPECT_EQ(said == "no error", row.at("outcome") == "accepted") << row << "\n" << said;
  }
  std::filesystem::remove_all(scratch);
}

}  // namespace
}  // namespace mxfp4
