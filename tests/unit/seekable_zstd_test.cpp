// Frames and the seek table: what is written decodes, in parts and whole; what lies is refused.
#include "formats/blob/seekable_zstd.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

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
  const int64_t low = encoder_bytes(1, 2 << 20);
  const int64_t high = encoder_bytes(19, 2 << 20);
  EXPECT_GT(low, 2 << 20);  // a frame's worst case is buffered
  EXPECT_LT(low, 8 << 20);
  EXPECT_GT(high, 16 << 20);
  EXPECT_LT(high, 128 << 20);
  EXPECT_LT(encoder_bytes(19, 64 << 10), high / 4);
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
  EXPECT_LT(info.encoded, (1 << 20) - 295000 + 3000);
  EXPECT_EQ(decoded(encoded, info), scales);
}

}  // namespace
}  // namespace mxfp4
