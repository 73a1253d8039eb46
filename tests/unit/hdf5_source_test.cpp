// HDF5 files: every form that is read, every one that is refused, and damaged ones.
#include "formats/hdf5/hdf5_source.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "formats/checkpoint/open_source.hpp"
#include "formats/checksum/sha256.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "tests/unit/containers.hpp"
#include "tests/unit/hex.hpp"
#include "tests/unit/scratch_path.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;
using test::kContainers;

std::map<std::string, size_t> index_of(const Source& source) {
  std::map<std::string, size_t> out;
  for (size_t i = 0; i < source.tensors().size(); ++i) out[source.tensors()[i].name] = i;
  return out;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Opens the file and reads every tensor.
std::string hdf5_refusal(const fs::path& path) {
  try {
    const auto source = open_source(path);
    for (size_t i = 0; i < source->tensors().size(); ++i) {
      if (source->tensors()[i].spec.bytes() < (16 << 20)) (void)test::read_all(*source, i);
    }
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with(path.string() + ": ")) << text;
    return text.substr(std::min(text.size(), path.string().size() + 2));
  }
  return "accepted";
}

TEST(Hdf5Source, GivesTheGoldenBytes) {
  const auto golden = nlohmann::json::parse(read_file(kContainers / "tensors.json")).at("tensors");
  const std::map<std::string, size_t> files = {
      {"checkpoint_flat_contiguous.h5", 12},
      {"checkpoint_nested_gzip.h5", 6},
      {"loaded_gzip.h5", 6},
      {"loaded_latest_fletcher.h5", 6},
      {"bad_big_endian_bias.h5", 6},  // swapped
  };
  for (const auto& [file, count] : files) {
    SCOPED_TRACE(file);
    const auto source = open_source(kContainers / "hdf5" / file);
    EXPECT_EQ(source->kind(), "hdf5");
    ASSERT_EQ(source->tensors().size(), count);
    EXPECT_NE(source->config_json().value().find("gpt_oss"), std::string::npos);
    EXPECT_EQ(source->attributes().count("config_json"), 0U);
    EXPECT_EQ(source->attributes().at("format"), "mxfp4-hdf5");
    for (size_t i = 0; i < count; ++i) {
      const SourceTensor& tensor = source->tensors()[i];
      const auto& want = golden.at(tensor.name);
      EXPECT_EQ(test::hex(sha256(test::read_all(*source, i))), want.at("sha256").get<std::string>())
          << tensor.name;
      EXPECT_EQ(dtype_name(tensor.spec.dtype), want.at("dtype").get<std::string>());
    }
  }
}

// The values of make_hdf5.py.
std::vector<std::byte> bytes_u8(int count) {
  std::vector<std::byte> out(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    out[static_cast<size_t>(i)] = static_cast<std::byte>((i * 37 + 11) % 251);
  }
  return out;
}
std::vector<std::byte> bytes_u16(int count) {
  std::vector<std::byte> out;
  for (int i = 0; i < count; ++i) {
    const int value = i * 977 + 5;
    out.push_back(static_cast<std::byte>(value & 0xFF));
    out.push_back(static_cast<std::byte>(value >> 8 & 0xFF));
  }
  return out;
}

class Hdf5Variety : public testing::TestWithParam<const char*> {
 protected:
  Hdf5Variety()
      : source_(open_source(kContainers / "hdf5" / GetParam())), at_(index_of(*source_)) {}
  void expect(const std::string& name, TensorSpec spec, const std::vector<std::byte>& bytes) {
    SCOPED_TRACE(name);
    const size_t index = at_.at(name);
    EXPECT_EQ(source_->tensors()[index].spec, spec);
    EXPECT_EQ(test::read_all(*source_, index), bytes);
  }
  std::unique_ptr<Source> source_;
  std::map<std::string, size_t> at_;
};

TEST_P(Hdf5Variety, ReadsEveryStorage) {
  const TensorSpec u8{DType::kU8, {5, 7, 9}};
  const TensorSpec bf16{DType::kBF16, {5, 7}};
  for (const char* name :
       {"layers.10.gzip", "layers.10.whole", "layers.10.zstd", "layers.2.contiguous"}) {
    expect(name, u8, bytes_u8(5 * 7 * 9));
  }
  for (const char* name : {"layers.10.gzip16", "layers.10.rows16", "layers.10.wide",
                           "layers.10.zstd16", "layers.10.big_endian", "layers.2.big_endian"}) {
    expect(name, bf16, bytes_u16(5 * 7));
  }
}

TEST_P(Hdf5Variety, MissingChunksHoldTheFillValue) {
  std::vector<std::byte> want;
  for (int row = 0; row < 6; ++row) {
    const bool written = row / 2 == 1;
    for (int i = 0; i < 4; ++i) {
      want.push_back(std::byte{static_cast<unsigned char>(written ? 0x0B : 0x02)});
      want.push_back(std::byte{static_cast<unsigned char>(written ? 0x0A : 0x01)});
    }
  }
  expect("layers.10.sparse", {DType::kBF16, {6, 4}}, want);
}

TEST_P(Hdf5Variety, ReadsElementTypes) {
  expect("layers.2.scalar", {DType::kF32, {}},
         {std::byte{0}, std::byte{0}, std::byte{0x60}, std::byte{0x40}});
  expect("layers.2.i8", {DType::kI8, {3, 4}}, bytes_u8(12));
  expect("layers.2.u16", {DType::kU16, {3, 4}}, bytes_u16(12));
  EXPECT_EQ(source_->tensors()[at_.at("layers.2.f16")].spec.dtype, DType::kF16);
  EXPECT_EQ(source_->tensors()[at_.at("layers.2.f32")].spec.dtype, DType::kF32);
  const auto f64 = test::read_all(*source_, at_.at("layers.2.f64"));  // stored big-endian
  double second = 0;
  std::memcpy(&second, f64.data() + 8, 8);
  EXPECT_EQ(second, 48.0);
}

TEST_P(Hdf5Variety, ReadsAttributesAndOrdersNames) {
  EXPECT_EQ(source_->attributes(),
            (std::map<std::string, std::string>{
                {"family", "generic"}, {"layout", "loaded"}, {"num_experts", "5"}}));
  EXPECT_EQ(source_->tensors().front().name, "layers.2.big_endian");
  EXPECT_EQ(source_->tensors().back().name, "layers.10.zstd16");
  EXPECT_FALSE(source_->config_json());
}

TEST_P(Hdf5Variety, AnyElementsGiveTheSameBytes) {
  constexpr unsigned kSeed = 8;
  std::mt19937 random(kSeed);
  for (size_t i = 0; i < source_->tensors().size(); ++i) {
    const TensorSpec& spec = source_->tensors()[i].spec;
    const std::vector<std::byte> whole = test::read_all(*source_, i);
    const int64_t width = dtype_bytes(spec.dtype);
    const int64_t elements = spec.shape.elements();
    for (int round = 0; round < 200; ++round) {
      const int64_t first = static_cast<int64_t>(random()) % elements;
      const int64_t count = static_cast<int64_t>(random()) % (elements - first + 1);
      std::vector<std::byte> out(static_cast<size_t>(count * width));
      source_->read(i, first * width, out);
      ASSERT_TRUE(std::equal(out.begin(), out.end(), whole.begin() + first * width))
          << source_->tensors()[i].name << " elements " << first << " + " << count;
    }
    if (width > 1) {
      EXPECT_THROW(source_->read(i, 1, {}), Error);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(FileVersions, Hdf5Variety,
                         testing::Values("variety_v0.h5", "variety_v3.h5"),
                         [](const auto& tested) { return std::string(tested.param, 8, 2); });

std::string passed_over(const fs::path& path) {
  const auto warnings = open_source(path)->warnings();
  const std::string text = warnings.empty() ? "" : warnings.front();
  return text.substr(std::min(text.size(), path.string().size() + 2));
}

// Names come first: what no expert's name asks for is passed over.
TEST(Hdf5Source, PassesOverNeighboursThatItCannotRead) {
  const std::map<std::string, std::string> expected = {
      {"array", ""},  // what is no number needs no warning
      {"complex_float", ""},
      {"compound", ""},
      {"empty_dimension", "a: shape: a dimension of 0: passed over"},
      {"enum", ""},
      {"external", "a: storage: external files are not followed: passed over"},
      {"group_twice", "g.again: a group of two names: passed over"},
      {"huge_chunks",
       "a: chunks of 1073741824 bytes, at most 268435456 are supported: passed over"},
      {"never_written", "a: 0 bytes are stored, U8 [4] needs 4: passed over"},
      {"never_written_chunks", "a: no data: the dataset was never written: passed over"},
      {"null_space", "a: shape: none (a null dataspace): passed over"},
      {"rank_9", "a: shape: 9 dimensions, at most 8 are supported: passed over"},
      {"soft_link", "a: soft links are not followed: passed over"},
      {"string", ""},
      {"unknown_dtype", "a: attribute dtype: unknown dtype \"F9\": passed over"},
      {"unknown_filter", "a: filter 4242 (unnamed) is not supported: passed over"},
      {"virtual", "a: storage: virtual datasets are not supported: passed over"},
      {"wrong_dtype", "a: attribute dtype: BF16, but the elements are stored as U8: passed over"},
  };
  for (const auto& [name, message] : expected) {
    EXPECT_EQ(passed_over(kContainers / "hdf5_refused" / (name + ".h5")), message) << name;
  }
}

TEST(Hdf5Source, RefusesWhatItCannotRead) {
  constexpr const char* kWrongChunk =
      "a: the chunk at 0 does not decode to the 64 bytes of a chunk";
  const std::map<std::string, std::string> expected = {
      {"external_link", "layers.0.experts: external links are not followed"},
      // The library would take what lies in memory behind a chunk that decodes to less.
      {"read_long_zstd", kWrongChunk},
      {"read_no_checksum", kWrongChunk},
      {"read_not_deflate", kWrongChunk},
      {"read_not_zstd", kWrongChunk},
      {"read_short_deflate", kWrongChunk},
      {"read_short_zstd", kWrongChunk},
      {"read_wrong_checksum",
       "a: cannot be read (HDF5: data error detected by Fletcher32 checksum)"},
      {"same_name", "a.b: two datasets have this name"},
      {"wrong_format", "attribute format: \"keras\", expected mxfp4-hdf5"},
      {"wrong_layout", "attribute layout: \"packed\", expected checkpoint or loaded"},
      {"wrong_version", "attribute version: \"2\", expected 1"},
  };
  for (const auto& [name, message] : expected) {
    EXPECT_EQ(hdf5_refusal(kContainers / "hdf5_refused" / (name + ".h5")), message) << name;
  }
  EXPECT_EQ(hdf5_refusal(kContainers / "hdf5" / "loaded_lzf.h5"),
            "layers.0.w13_bias: filter 32000 (lzf) is not supported");
  EXPECT_EQ(hdf5_refusal(kContainers / "hdf5" / "loaded_szip.h5"),
            "layers.0.w13_bias: filter 4 (szip) is not supported");
  EXPECT_TRUE(hdf5_refusal(kContainers / "hdf5" / "bad_truncated.h5")
                  .starts_with("cannot be opened (HDF5: truncated file"));
}

// The library itself crashes on some of these files; the reader must not.
TEST(Hdf5Source, SurvivesRandomCorruption) {
  constexpr unsigned kSeed = 20260518;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const fs::path path = test::scratch_path("hdf5_source.corrupt.h5");
  int refused = 0;
  constexpr int kRounds = 150;
  for (int round = 0; round < kRounds; ++round) {
    const char* names[] = {"variety_v0.h5", "variety_v3.h5", "loaded_gzip.h5",
                           "checkpoint_flat_contiguous.h5"};
    std::string file = read_file(kContainers / "hdf5" / names[random() % 4]);
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      file[8 + random() % (file.size() - 8)] = static_cast<char>(random());
    }
    if (random() % 8 == 0) file.resize(8 + random() % (file.size() - 8));
    std::ofstream(path, std::ios::binary) << file;
    refused += hdf5_refusal(path) != "accepted" ? 1 : 0;
  }
  fs::remove(path);
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, kRounds);
}

}  // namespace
}  // namespace mxfp4
