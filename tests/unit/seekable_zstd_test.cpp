// Frames and the seek table: what is written decodes, in parts and whole; what lies is refused.
#include "formats/blob/seekable_zstd.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include <cmath>
#include <cstring>
#include <random>

#include "lib/core/error.hpp"
#include "tests/unit/test_bytes.hpp"

namespace mxfp4 {
namespace {

using Bytes = std::vector<std::byte>;

using test::random_bytes;

Bytes decoded(const Bytes& encoded, const FrameInfo& info) {
  Bytes out(static_cast<size_t>(info.decoded));
  decode_frame(encoded, info, out);
  return out;
}

struct File {
  Bytes bytes;
  std::vector<FrameInfo> frames;
};

File make_file(const std::vector<Bytes>& contents) {
  FrameEncoder encoder(1);
  File file;
  for (const Bytes& content : contents) {
    file.frames.push_back(encoder.encode(content, file.bytes));
  }
  const Bytes table = make_seek_table(file.frames);
  file.bytes.insert(file.bytes.end(), table.begin(), table.end());
  return file;
}

void expect_refused(const Bytes& file, std::string_view words) {
  try {
    (void)read_seek_table(file);
    FAIL() << "accepted; expected: " << words;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

void store_u32(Bytes& file, size_t at, uint32_t value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}

TEST(SeekableZstd, FramesOfEverySizeRoundTrip) {
  for (const int level : {1, 2, 3}) {
    FrameEncoder encoder(level);
    for (size_t size : {1U, 2U, 255U, 256U, 131071U, 131072U, 131073U, 262144U, 2097152U}) {
      for (bool compressible : {false, true}) {
        const Bytes content = compressible ? Bytes(size, std::byte{7}) : random_bytes(size, size);
        Bytes encoded;
        const FrameInfo info = encoder.encode(content, encoded);
        EXPECT_EQ(info.encoded, static_cast<int64_t>(encoded.size()));
        EXPECT_EQ(decoded(encoded, info), content) << level << " " << size;
      }
    }
  }
}

TEST(SeekableZstd, EncodersTakeMoreMemoryAtHigherLevels) {
  EXPECT_EQ(encoder_bytes(1, 2 << 20), 0);
  const int64_t low = encoder_bytes(2, 2 << 20);
  const int64_t high = encoder_bytes(19, 2 << 20);
  EXPECT_GT(low, 2 << 20);  // a frame's worst case is buffered
  EXPECT_LT(low, 8 << 20);
  EXPECT_GT(high, 16 << 20);
  EXPECT_LT(high, 128 << 20);
  EXPECT_LT(encoder_bytes(19, 64 << 10), high / 4);
}

TEST(SeekableZstd, RandomBytesAreStoredRaw) {
  FrameEncoder encoder(1);
  Bytes encoded;
  const Bytes content = random_bytes(1 << 20, 3);
  const FrameInfo info = encoder.encode(content, encoded);
  // 96 bytes for each block of 128 KiB, the frame's header among them, and 64 at the end.
  EXPECT_EQ(info.encoded, (1 << 20) + 8 * 96 + 64);
}

// Block scales of a trained model: a few neighbouring exponents, no repeats but padding.
Bytes trained_scales() {
  std::mt19937 draw(5);
  std::normal_distribution<float> exponents(120, 1.2F);
  Bytes scales(1 << 20);
  for (std::byte& b : scales) b = static_cast<std::byte>(std::lround(exponents(draw)));
  return scales;
}

TEST(SeekableZstd, LevelTwoCodesScalesWellAndFindsPadding) {
  Bytes scales = trained_scales();
  FrameEncoder encoder(2);
  Bytes encoded;
  const FrameInfo info = encoder.encode(scales, encoded);
  EXPECT_LT(info.encoded, (1 << 20) * 36 / 100);
  EXPECT_EQ(decoded(encoded, info), scales);

  std::fill(scales.begin() + (1 << 19), scales.end(), std::byte{0});
  encoded.clear();
  EXPECT_LT(encoder.encode(scales, encoded).encoded, (1 << 20) * 19 / 100);
}

TEST(SeekableZstd, LevelOneStoresScalesAndShortensRuns) {
  Bytes scales = trained_scales();
  std::fill(scales.begin() + 5000, scales.begin() + 300000, std::byte{0});
  FrameEncoder encoder(1);
  Bytes encoded;
  const FrameInfo info = encoder.encode(scales, encoded);
  EXPECT_GE(info.encoded, (1 << 20) - 295000);
  EXPECT_LT(info.encoded, (1 << 20) - 295000 + 1000);
  EXPECT_EQ(decoded(encoded, info), scales);
}

TEST(SeekableZstd, AnyZstdReaderTakesTheWholeFile) {
  const std::vector<Bytes> contents = {random_bytes(5000, 1), Bytes(70000, std::byte{1})};
  const File file = make_file(contents);
  // One-shot decompression of all frames, the skippable table included.
  Bytes out(75000);
  size_t at = 0;
  for (const SeekEntry& entry : read_seek_table(file.bytes)) {
    const size_t size =
        ZSTD_decompress(out.data() + at, out.size() - at, file.bytes.data() + entry.encoded_offset,
                        static_cast<size_t>(entry.frame.encoded));
    ASSERT_EQ(ZSTD_isError(size), 0U);
    at += size;
  }
  EXPECT_EQ(at, out.size());
  EXPECT_TRUE(std::equal(contents[0].begin(), contents[0].end(), out.begin()));
}

TEST(SeekableZstd, TableOffsetsAreRunningSums) {
  const File file = make_file({Bytes(10, std::byte{1}), Bytes(20, std::byte{2})});
  const std::vector<SeekEntry> entries = read_seek_table(file.bytes);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[1].encoded_offset, file.frames[0].encoded);
  EXPECT_EQ(entries[1].decoded_offset, 10);
  EXPECT_EQ(entries[1].frame.checksum, file.frames[1].checksum);
}

TEST(SeekableZstd, TablesThatLieAreRefused) {
  const File good = make_file({Bytes(10, std::byte{1}), Bytes(20, std::byte{2})});
  const size_t size = good.bytes.size();
  const size_t table = size - 2 * 12 - 9 - 8;

  expect_refused({}, "no seek table");
  expect_refused(Bytes(good.bytes.begin(), good.bytes.end() - 1), "no seek table");
  Bytes bad = good.bytes;
  store_u32(bad, size - 9, 0xFFFFFFFF);  // more frames than the file has bytes
  expect_refused(bad, "does not fit");
  bad = good.bytes;
  store_u32(bad, table + 8, 11);  // first frame longer than it is
  expect_refused(bad, "the file has");
  bad = good.bytes;
  store_u32(bad, table + 12, 0x7FFFFFFF);  // decoded size beyond every bound
  expect_refused(bad, "at most");
  bad = good.bytes;
  bad[size - 5] = std::byte{0};
  expect_refused(bad, "descriptor");
  bad = good.bytes;
  bad[table] = std::byte{0};
  expect_refused(bad, "does not fit");
}

TEST(SeekableZstd, DamagedFramesAreRefused) {
  FrameEncoder encoder(1);
  const Bytes content = random_bytes(300000, 9);
  Bytes encoded;
  FrameInfo info = encoder.encode(content, encoded);
  for (size_t at = 0; at < encoded.size(); at += 977) {
    Bytes bad = encoded;
    bad[at] ^= std::byte{0x10};
    EXPECT_THROW((void)decoded(bad, info), Error) << at;
  }
  FrameInfo other = info;
  other.decoded -= 1;
  EXPECT_THROW((void)decoded(encoded, other), Error);
  other = info;
  other.checksum ^= 1;
  EXPECT_THROW((void)decoded(encoded, other), Error);
}

}  // namespace
}  // namespace mxfp4
