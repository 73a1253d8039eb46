// A manifest is read as it was written; what of it is refused: testdata/mutants, by tests/python/test_mutants.py.
#include "formats/blob/manifest.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/blob/layout_facts.hpp"
#include "lib/core/error.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/unit/sample_manifest.hpp"

namespace mxfp4 {
namespace {

using test::sample_manifest;

TEST(Manifest, ReadsWhatItWrote) {
  Manifest manifest = sample_manifest();
  manifest.rest.push_back({"config.json", 5, std::string(32, 'c')});
  const std::string text = write_manifest(manifest);
  EXPECT_EQ(write_manifest(parse_manifest(text)), text);
  EXPECT_EQ(parse_manifest(text).rest.at(0).name, "config.json");
}

TEST(Manifest, AnySpellingIsRead) {
  const Manifest manifest = sample_manifest();
  nlohmann::ordered_json json = manifest_to_json(manifest);
  json["a note of a newer program"] = {{"x", 1}};
  const std::string text = nlohmann::json::parse(seal_json(json)).dump();
  EXPECT_EQ(write_manifest(parse_manifest(text)), write_manifest(manifest));
}

TEST(Manifest, EveryChangedByteIsSeen) {
  const std::string text = write_manifest(sample_manifest());
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_THROW((void)parse_manifest(changed), Error) << at;
  }
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
