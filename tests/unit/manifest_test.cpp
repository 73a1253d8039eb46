// What a consumer of blobs refuses.
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
#include "formats/checksum/checksum.hpp"
#include "formats/os/file.hpp"
#include "lib/core/error.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/testdata.hpp"
#include "tests/unit/sample_manifest.hpp"

namespace mxfp4 {
namespace {

using test::message_of;
using test::sample_manifest;
using Json = nlohmann::ordered_json;

// The message of parse_manifest for a sound manifest after `change`, sealed again.
std::string manifest_refusal(const std::function<void(Json&)>& change) {
  Json changed = manifest_to_json(sample_manifest());
  change(changed);
  return message_of([&] { (void)parse_manifest(seal_json(changed)); });
}

TEST(Manifest, ReadsWhatItWrote) {
  Manifest manifest = sample_manifest();
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
    Manifest manifest = sample_manifest();
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
  const std::string text = write_manifest(sample_manifest());
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_THROW((void)parse_manifest(changed), Error) << at;
  }
}

TEST(Manifest, HoldsTheLayoutOfItsRevision) {
  Manifest manifest = sample_manifest({});
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

// testdata/mutants/table.json, which tests/python/test_mutants.py goes through too: one changed
// fact, and everything around it made right.
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

TEST(Manifest, KnowsNamesOfLayerFiles) {
  for (const int64_t index : {0, 7, 99'999, 100'000, 1'234'567}) {
    for (const bool zstd : {false, true}) {
      EXPECT_TRUE(is_layer_file_name(layer_file_name(index, zstd)));
    }
  }
  for (const std::string_view other :
       {"", "layer-", "layer-00001", "layer-.safetensors", "layer-1a.safetensors", "layer-1.zst",
        "layer-00001.safetensors.zst.zst", ".layer-00001.safetensors", "layer--1.safetensors",
        "layer-00001.safetensors.index.json"}) {
    EXPECT_FALSE(is_layer_file_name(other)) << other;
  }
}

}  // namespace
}  // namespace mxfp4
