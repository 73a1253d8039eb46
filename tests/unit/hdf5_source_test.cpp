// HDF5 files: every form that is read, every one that is refused, and damaged ones.
#include "formats/hdf5/hdf5_source.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>

#include "formats/checkpoint/open_source.hpp"
#include "formats/checksum/sha256.hpp"
#include "formats/hdf5/hdf5_filters.hpp"
#include "lib/core/error.hpp"
#include "tests/unit/containers.hpp"
#include "tests/unit/hex.hpp"
#include "tests/unit/scratch_path.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;
using test::kContainers;

std::vector<std::byte> read_all(Source& source, size_t index) {
  std::vector<std::byte> out(static_cast<size_t>(source.tensors()[index].spec.bytes()));
  source.read(index, 0, out);
  return out;
}

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
      if (source->tensors()[i].spec.bytes() < (16 << 20)) (void)read_all(*source, i);
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
      EXPECT_EQ(test::hex(sha256(read_all(*source, i))), want.at("sha256").get<std::string>())
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
    EXPECT_EQ(read_all(*source_, index), bytes);
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
  const auto f64 = read_all(*source_, at_.at("layers.2.f64"));  // stored big-endian
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

TEST_P(Hdf5Variety, AnySlabsInAnyOrderGiveTheSameBytes) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  std::vector<std::vector<std::byte>> whole;
  for (size_t i = 0; i < source_->tensors().size(); ++i) whole.push_back(read_all(*source_, i));
  for (int round = 0; round < 2000; ++round) {
    const size_t index = random() % whole.size();
    const Shape& shape = source_->tensors()[index].spec.shape;
    const int64_t rows = shape.rank() == 0 ? 1 : shape[0];
    const int64_t first = static_cast<int64_t>(random()) % rows;
    const int64_t count = static_cast<int64_t>(random()) % (rows - first + 1);
    const int64_t row_bytes = static_cast<int64_t>(whole[index].size()) / rows;
    std::vector<std::byte> out(static_cast<size_t>(count * row_bytes));
    source_->read(index, first * row_bytes, out);
    ASSERT_TRUE(std::equal(out.begin(), out.end(), whole[index].begin() + first * row_bytes))
        << source_->tensors()[index].name << " rows " << first << " + " << count;
  }
}

TEST_P(Hdf5Variety, AnyElementsGiveTheSameBytes) {
  constexpr unsigned kSeed = 8;
  std::mt19937 random(kSeed);
  for (size_t i = 0; i < source_->tensors().size(); ++i) {
    const TensorSpec& spec = source_->tensors()[i].spec;
    const std::vector<std::byte> whole = read_all(*source_, i);
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

TEST_P(Hdf5Variety, MapsContiguousLittleEndianDataOnly) {
  const size_t contiguous = at_.at("layers.2.contiguous");
  const ConstBytes view = source_->view(contiguous, 63, 126);
  const auto want = bytes_u8(5 * 7 * 9);
  EXPECT_TRUE(std::equal(view.begin(), view.end(), want.begin() + 63, want.begin() + 63 + 126));
  EXPECT_TRUE(source_->maps(contiguous));
  EXPECT_FALSE(source_->maps(at_.at("layers.10.gzip")));
  EXPECT_FALSE(source_->maps(at_.at("layers.2.big_endian")));
  EXPECT_TRUE(source_->view(at_.at("layers.10.gzip"), 0, 63).empty());
  EXPECT_TRUE(source_->view(at_.at("layers.2.big_endian"), 0, 14).empty());
  EXPECT_THROW((void)source_->view(contiguous, 0, 1000), Error);
}

INSTANTIATE_TEST_SUITE_P(FileVersions, Hdf5Variety,
                         testing::Values("variety_v0.h5", "variety_v3.h5"),
                         [](const auto& tested) { return std::string(tested.param, 8, 2); });

TEST(Hdf5Source, RefusesWhatItCannotRead) {
  const std::string only = " is not supported, only deflate, shuffle, fletcher32 and zstd are";
  const std::map<std::string, std::string> expected = {
      {"compact", "a: storage: neither contiguous nor chunked"},
      {"empty_dimension", "a: shape: a dimension of 0"},
      {"external", "a: storage: external files are not followed"},
      {"external_link", "a: external links are not followed"},
      {"group_twice", "g.again: a group that is reached by two names"},
      {"huge_chunks", "a: chunks of 1073741824 bytes, at most 268435456 are supported"},
      {"many_chunks", "a: 134217728 chunks, at most 1048576 are supported"},
      {"never_written", "a: no data: the dataset was never written"},
      {"never_written_chunks", "a: no data: the dataset was never written"},
      {"null_space", "a: shape: none (a null dataspace)"},
      {"rank_9", "a: shape: 9 dimensions, at most 8 are supported"},
      {"read_long_zstd",
       "a: chunk 0: filter 32015 (zstd): damaged data: Destination buffer is too small"},
      {"read_no_checksum", "a: chunk 0: filter 3 (fletcher32): shorter than its checksum"},
      {"read_not_deflate", "a: chunk 0: filter 1 (deflate): damaged data"},
      {"read_short_zstd", "a: chunk 0: decodes to 63 bytes, expected 64"},
      {"read_wrong_checksum", "a: chunk 0: filter 3 (fletcher32): wrong checksum: damaged data"},
      {"same_name", "a.b: two datasets have this name"},
      {"scaleoffset", "a: filter 6 (scaleoffset)" + only},
      {"short_chunk", "a: chunk 0: 63 bytes are stored, expected 64"},
      {"soft_link", "a: soft links are not followed"},
      {"unknown_dtype", "a: attribute dtype: unknown dtype \"F9\""},
      {"unknown_filter", "a: filter 4242 (unnamed)" + only},
      {"virtual", "a: storage: virtual datasets are not supported"},
      {"wrong_dtype", "a: attribute dtype: BF16, but the elements are stored as U8"},
      {"wrong_format", "attribute format: \"keras\", expected mxfp4-hdf5"},
      {"wrong_layout", "attribute layout: \"packed\", expected checkpoint or loaded"},
      {"wrong_version", "attribute version: \"2\", expected 1"},
  };
  for (const auto& [name, message] : expected) {
    EXPECT_EQ(hdf5_refusal(kContainers / "hdf5_refused" / (name + ".h5")), message) << name;
  }
  // Beside tensors, elements that are not numbers are passed over.
  const std::set<std::string> passed_over = {"array", "complex_float", "compound", "enum",
                                             "string"};
  for (const auto& entry : fs::directory_iterator(kContainers / "hdf5_refused")) {
    const bool accepted = hdf5_refusal(entry.path()) == "accepted";
    EXPECT_EQ(accepted, passed_over.contains(entry.path().stem().string())) << entry.path();
  }
  EXPECT_EQ(hdf5_refusal(kContainers / "hdf5" / "loaded_lzf.h5"),
            "layers.0.w13_bias: filter 32000 (lzf)" + only);
  EXPECT_EQ(hdf5_refusal(kContainers / "hdf5" / "loaded_szip.h5"),
            "layers.0.w13_bias: filter 4 (szip)" + only);
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

std::vector<std::byte> noise(size_t size) {
  std::vector<std::byte> out(size);
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(i * i >> 3);
  return out;
}

std::vector<std::byte> decoded(const std::vector<Hdf5Filter>& filters, uint32_t skipped,
                               ConstBytes stored, int64_t chunk_bytes) {
  const UninitializedBytes bytes = decode_hdf5_chunk(filters, skipped, stored, chunk_bytes);
  return {bytes.begin(), bytes.end()};
}

TEST(Hdf5Filters, ZstdFramesAreDecoded) {
  const auto chunk = noise(10000);
  std::vector<std::byte> stored(ZSTD_compressBound(chunk.size()));
  stored.resize(ZSTD_compress(stored.data(), stored.size(), chunk.data(), chunk.size(), 3));
  EXPECT_LT(stored.size(), chunk.size());
  const std::vector<Hdf5Filter> zstd = {{.id = 32015, .params = {3}}};
  EXPECT_EQ(decoded(zstd, 0, stored, 10000), chunk);
  EXPECT_THROW((void)decoded(zstd, 0, stored, 9999 - 4), Error);
  EXPECT_THROW((void)decoded(zstd, 0, stored, 10001), Error);
}

TEST(Hdf5Filters, SkippedFiltersAreLeftAlone) {
  const auto chunk = noise(100);
  EXPECT_EQ(decoded({{.id = 2, .params = {4}}, {.id = 1, .params = {}}}, 3, chunk, 100), chunk);
}

TEST(Hdf5Filters, ShuffleKeepsAnIncompleteElement) {
  const std::vector<std::byte> stored = {std::byte{1}, std::byte{3}, std::byte{2}, std::byte{4},
                                         std::byte{9}};
  const std::vector<std::byte> want = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                                       std::byte{9}};
  EXPECT_EQ(decoded({{.id = 2, .params = {2}}}, 0, stored, 5), want);
  EXPECT_EQ(decoded({{.id = 2, .params = {0}}}, 0, stored, 5), stored);
  EXPECT_EQ(decoded({{.id = 2, .params = {4000000000U}}}, 0, stored, 5), stored);
}

TEST(Hdf5Filters, FletcherSumsBigEndianWords) {
  const auto of = [](std::initializer_list<int> values) {
    std::vector<std::byte> bytes;
    for (int v : values) bytes.push_back(static_cast<std::byte>(v));
    return hdf5_fletcher32(bytes);
  };
  EXPECT_EQ(of({0x01, 0x02}), 0x01020102U);
  EXPECT_EQ(of({0x01, 0x02, 0x03}), 0x05040402U);  // words 0x0102, 0x0300
  EXPECT_EQ(of({}), 0U);
}

}  // namespace
}  // namespace mxfp4
