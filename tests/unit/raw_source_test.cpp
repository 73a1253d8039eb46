// Raw dumps: what a manifest may say, and each fault by its own message.
#include "formats/checkpoint/raw_source.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "formats/checkpoint/open_source.hpp"
#include "formats/checksum/sha256.hpp"
#include "lib/core/error.hpp"
#include "tests/unit/containers.hpp"
#include "tests/unit/hex.hpp"
#include "tests/unit/scratch_path.hpp"
#include "tests/unit/test_bytes.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::kContainers;

using test::as_bytes;

// A sound manifest of two tensors in one file.
json sound() {
  return json::parse(R"({"format": "mxfp4-raw", "version": 1, "layout": "loaded",
    "byte_order": "little", "order": "C", "family": "generic", "num_experts": 2, "tensors": [
      {"name": "a", "file": "x.bin", "dtype": "U8", "shape": [2, 3], "offset": 0, "nbytes": 6},
      {"name": "b", "file": "x.bin", "dtype": "BF16", "shape": [2], "offset": 8, "nbytes": 4}]})");
}
json& tensor(json& manifest, size_t i) { return manifest["tensors"][i]; }

std::string raw_refusal(const json& manifest) {
  try {
    (void)parse_raw_manifest(manifest.dump());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "accepted";
}
// The refusal of the sound manifest after `change`.
template <class Change>
std::string after(Change change) {
  json manifest = sound();
  change(manifest);
  return raw_refusal(manifest);
}

TEST(RawManifest, ReadsTensorsAndAttributes) {
  const RawManifest manifest = parse_raw_manifest(sound().dump());
  ASSERT_EQ(manifest.tensors.size(), 2U);
  EXPECT_EQ(manifest.tensors[1].spec, (TensorSpec{DType::kBF16, {2}}));
  EXPECT_EQ(manifest.tensors[1].offset, 8);
  EXPECT_EQ(manifest.attributes.at("family"), "generic");
  EXPECT_EQ(manifest.attributes.at("num_experts"), "2");
  EXPECT_FALSE(manifest.config);
}

TEST(RawManifest, OptionalKeysMayBeAbsent) {
  EXPECT_EQ(after([](json& m) {
              for (const char* key : {"layout", "byte_order", "order", "family"}) m.erase(key);
              tensor(m, 0).erase("offset");
            }),
            "accepted");
}

TEST(RawManifest, RefusesWrongHeads) {
  EXPECT_EQ(raw_refusal(json::array()), "expected a JSON object, found array");
  EXPECT_EQ(after([](json& m) { m.erase("format"); }), "format: missing");
  EXPECT_EQ(after([](json& m) { m["format"] = "npy"; }), "format: \"npy\", expected mxfp4-raw");
  EXPECT_EQ(after([](json& m) { m["format"] = 3; }), "format: expected a string, found number");
  EXPECT_EQ(after([](json& m) { m["version"] = 2; }), "version: 2, expected 1");
  EXPECT_EQ(after([](json& m) { m["version"] = "1"; }),
            "version: expected a non-negative integer of 63 bits, found string");
  EXPECT_EQ(after([](json& m) { m["layout"] = "packed"; }),
            "layout: \"packed\", expected checkpoint or loaded");
  EXPECT_EQ(after([](json& m) { m["byte_order"] = "big"; }),
            "byte_order: \"big\", expected little");
  EXPECT_EQ(after([](json& m) { m["order"] = "F"; }), "order: \"F\", expected C");
  EXPECT_EQ(after([](json& m) { m["config"] = "../config.json"; }),
            "config: \"../config.json\": leaves the manifest's directory");
  EXPECT_EQ(after([](json& m) { m.erase("tensors"); }), "tensors: missing");
  EXPECT_EQ(after([](json& m) { m["tensors"] = 3; }), "tensors: expected an array, found number");
  EXPECT_EQ(after([](json& m) { tensor(m, 1) = 3; }),
            "tensors[1]: expected a JSON object, found number");
}

TEST(RawManifest, RefusesWrongTensors) {
  EXPECT_EQ(after([](json& m) { tensor(m, 0).erase("name"); }), "tensors: name: missing");
  EXPECT_EQ(after([](json& m) { tensor(m, 1)["name"] = "a"; }), "tensors: a: listed twice");
  EXPECT_EQ(after([](json& m) { tensor(m, 0).erase("file"); }), "tensors: a: file: missing");
  EXPECT_EQ(after([](json& m) { tensor(m, 0)["dtype"] = "FP4"; }),
            "tensors: a: dtype: unknown dtype \"FP4\"");
  EXPECT_EQ(after([](json& m) {
              tensor(m, 0)["shape"] = {-2, 3};
            }),
            "tensors: a: shape: expected a non-negative integer of 63 bits, found number");
  EXPECT_EQ(after([](json& m) {
              tensor(m, 0)["shape"] = {1LL << 40, 1LL << 40};
            }),
            "tensors: a: shape: a product of sizes overflows 64 bits");
  EXPECT_EQ(after([](json& m) { tensor(m, 0)["shape"] = std::vector<int>(9, 1); }),
            "tensors: a: shape: 9 dimensions, at most 8 are supported");
  EXPECT_EQ(after([](json& m) { tensor(m, 0)["nbytes"] = 7; }),
            "tensors: a: nbytes: 7, but U8 [2, 3] needs 6");
  EXPECT_EQ(
      after([](json& m) { tensor(m, 0)["ofset"] = 7; }),
      "tensors: a: ofset: unknown key, expected name, file, dtype, shape, offset, nbytes, sha256");
  EXPECT_EQ(after([](json& m) { tensor(m, 0)["offset"] = INT64_MAX; }),
            "tensors: a: offset: a sum of sizes overflows 64 bits");
  EXPECT_EQ(after([](json& m) { tensor(m, 0)["sha256"] = "00"; }),
            "tensors: a: sha256: not 64 hexadecimal digits");
  EXPECT_EQ(after([](json& m) { tensor(m, 1)["offset"] = 5; }),
            "tensors: b: its bytes overlap the bytes of \"a\" in \"x.bin\"");
  EXPECT_EQ(after([](json& m) { tensor(m, 1)["offset"] = 6; }), "accepted");
}

TEST(RawManifest, RefusesPathsThatLeaveTheDirectory) {
  const auto file = [](const std::string& path) {
    return after([&](json& m) { tensor(m, 0)["file"] = path; });
  };
  EXPECT_EQ(file("below/x.bin"), "accepted");
  EXPECT_EQ(file("..x"), "accepted");
  EXPECT_EQ(file("../x"), "tensors: a: file: \"../x\": leaves the manifest's directory");
  EXPECT_EQ(file("a/../x"), "tensors: a: file: \"a/../x\": leaves the manifest's directory");
  EXPECT_EQ(file("/x"),
            "tensors: a: file: \"/x\": absolute, expected a path relative to the manifest");
  EXPECT_EQ(file(""), "tensors: a: file: \"\": empty, expected a path relative to the manifest");
  EXPECT_EQ(file("./x"), "tensors: a: file: \"./x\": has an empty or . component");
  EXPECT_EQ(file("a//x"), "tensors: a: file: \"a//x\": has an empty or . component");
  EXPECT_EQ(file("a/"), "tensors: a: file: \"a/\": has an empty or . component");
  EXPECT_EQ(file(std::string("x\0y", 3)), "tensors: a: file: \"x\\x00y\": holds a NUL");
}

TEST(RawManifest, SurvivesRandomCorruption) {
  constexpr unsigned kSeed = 20260518;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const std::string text = sound().dump();
  for (int round = 0; round < 5000; ++round) {
    std::string changed = text;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      changed[random() % changed.size()] = static_cast<char>(random());
    }
    try {
      (void)parse_raw_manifest(changed);
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::kInput);
    }
  }
}

class RawSource : public testing::Test {
 protected:
  RawSource() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    dir_ = test::scratch_path(std::string("raw_source.") + info->name());
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    write("x.bin", "abcdef--BBBB");
    write("manifest.json", sound().dump());
  }
  ~RawSource() override { fs::remove_all(dir_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name, std::ios::binary) << text;
  }
  std::string refusal_on_opening() {
    try {
      (void)open_source(dir_);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      return std::string(error.what()).substr(dir_.string().size() + 1);
    }
    return "accepted";
  }
  fs::path dir_;
};

TEST_F(RawSource, GivesTheGoldenBytes) {
  std::ifstream in(kContainers / "tensors.json");
  const auto golden = json::parse(in).at("tensors");
  for (const char* form : {"raw_checkpoint", "raw_loaded"}) {
    SCOPED_TRACE(form);
    const auto source = open_source(kContainers / form);
    EXPECT_EQ(source->kind(), "raw");
    ASSERT_EQ(source->tensors().size(), 12U);
    EXPECT_EQ(source->config_json().has_value(), std::string(form) == "raw_checkpoint");
    for (size_t i = 0; i < 12; ++i) {
      const SourceTensor& tensor = source->tensors()[i];
      EXPECT_EQ(test::hex(sha256(source->view(i, 0, tensor.spec.bytes()))),
                golden.at(tensor.name).at("sha256").get<std::string>());
    }
  }
}

TEST_F(RawSource, OpensTheManifestItself) {
  const auto source = open_source(dir_ / "manifest.json");
  EXPECT_EQ(source->kind(), "raw");
  EXPECT_EQ(source->tensors()[1].name, "b");
  std::vector<std::byte> out(4);
  source->read(1, 0, out);
  EXPECT_EQ(out, std::vector<std::byte>(4, std::byte{'B'}));
  EXPECT_EQ(source->files().size(), 2U);
}

TEST_F(RawSource, RefusesShortAndMissingFiles) {
  write("x.bin", "abcdef--BBB");
  EXPECT_EQ(refusal_on_opening(), "x.bin: b: needs bytes 8 to 12, the file has 11");
  fs::remove(dir_ / "x.bin");
  EXPECT_EQ(refusal_on_opening(), "x.bin: cannot be opened: No such file or directory");
  fs::create_directory(dir_ / "x.bin");
  EXPECT_EQ(refusal_on_opening(), "x.bin: is a directory, expected a file");
}

// The header of numpy.save() was taken for codes, without a word.
TEST_F(RawSource, RefusesTheHeaderOfAnArrayAsData) {
  write("x.bin",
        "\x93"
        "NUMPYBBBBBB");
  EXPECT_EQ(refusal_on_opening(),
            "x.bin: a: offset 0 is the header of a NumPy array, not the data");
  json manifest = sound();
  tensor(manifest, 0)["offset"] = 1;  // who names a place behind it has seen the header
  write("manifest.json", manifest.dump());
  EXPECT_EQ(refusal_on_opening(), "accepted");
}

TEST_F(RawSource, RefusesAMissingConfig) {
  json manifest = sound();
  manifest["config"] = "config.json";
  write("manifest.json", manifest.dump());
  EXPECT_EQ(refusal_on_opening(), "config.json: cannot be opened: No such file or directory");
  write("config.json", "{}");
  EXPECT_EQ(open_source(dir_)->config_json(), "{}");
}

TEST_F(RawSource, ComparesChecksumsOnFirstUse) {
  json manifest = sound();
  tensor(manifest, 0)["sha256"] = test::hex(sha256(as_bytes("abcdef")));
  tensor(manifest, 1)["sha256"] = std::string(64, 'A');
  write("manifest.json", manifest.dump());
  const auto source = open_source(dir_);
  EXPECT_EQ(source->view(0, 3, 3).size(), 3U);
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      (void)source->view(1, 0, 2);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("x.bin: b: its bytes do not have the sha256"),
                std::string::npos);
    }
  }
}

TEST_F(RawSource, SafetensorsWinOverAForeignManifest) {
  fs::copy(kContainers / "safetensors", dir_);
  EXPECT_EQ(open_source(dir_)->kind(), "raw");
  write("manifest.json", R"({"name": "something else"})");
  EXPECT_EQ(open_source(dir_)->kind(), "safetensors");
}

TEST(Sha256, KnownDigests) {
  EXPECT_EQ(test::hex(sha256({})),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(test::hex(sha256(as_bytes("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // One and two blocks of padding.
  EXPECT_EQ(test::hex(sha256(as_bytes(std::string(55, 'a')))),
            "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(test::hex(sha256(as_bytes(std::string(56, 'a')))),
            "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  EXPECT_EQ(test::hex(sha256(as_bytes(std::string(1'000'000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace mxfp4
