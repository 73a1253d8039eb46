// Raw dumps: the golden bytes, and what a manifest's data may be. Faults of manifests: tests/cli/malformed_inputs.py.
#include "formats/checkpoint/raw_source.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
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
      EXPECT_EQ(test::hex(sha256(test::read_all(*source, i))),
                golden.at(tensor.name).at("sha256").get<std::string>());
    }
  }
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

TEST_F(RawSource, ComparesChecksumsOnFirstUse) {
  json manifest = sound();
  tensor(manifest, 0)["sha256"] = test::hex(sha256(as_bytes("abcdef")));
  tensor(manifest, 1)["sha256"] = std::string(64, 'A');
  write("manifest.json", manifest.dump());
  const auto source = open_source(dir_);
  std::vector<std::byte> out(2);
  source->read(0, 3, out);
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      source->read(1, 0, out);
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
