// Raw frames: zstd decodes them, so does our own reader, and both refuse damage; and which frames are
// shortened.
#include "formats/blob/raw_frames.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include <random>

#include "formats/blob/seekable_zstd.hpp"
#include "formats/checksum/checksum.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

using Bytes = std::vector<std::byte>;

struct Frame {
  Bytes content;
  Bytes encoded;
  FrameInfo info;
};

Bytes noise(size_t size) {
  std::mt19937_64 draw(size);
  Bytes bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(draw());
  return bytes;
}

Frame make_frame(size_t size) {
  Frame frame{noise(size), {}, {}};
  frame.info = write_raw_frame(frame.content, nullptr, [&](ConstBytes bytes) {
    frame.encoded.insert(frame.encoded.end(), bytes.begin(), bytes.end());
  });
  EXPECT_EQ(frame.info.encoded, static_cast<int64_t>(frame.encoded.size()));
  EXPECT_EQ(frame.info.encoded, raw_frame_bytes(static_cast<int64_t>(size)));
  return frame;
}

Bytes by_zstd(const Bytes& encoded, size_t decoded) {
  Bytes out(decoded);
  EXPECT_EQ(ZSTD_getFrameContentSize(encoded.data(), encoded.size()), decoded);
  const size_t size = ZSTD_decompress(out.data(), decoded, encoded.data(), encoded.size());
  EXPECT_EQ(size, decoded) << ZSTD_getErrorName(size);
  return out;
}

TEST(RawFrames, EveryDecoderGivesTheContent) {
  for (const size_t size : {1U, 40U, 32767U, 32768U, 131072U, 131073U, 500000U, 2U << 20}) {
    const Frame frame = make_frame(size);
    EXPECT_EQ(by_zstd(frame.encoded, size), frame.content) << size;
    for (const FrameCheck check : {FrameCheck::kSizes, FrameCheck::kChecksums}) {
      Bytes out(size);
      ChecksumPart sum;
      sum.begin(0);
      ASSERT_TRUE(copy_raw_frame(frame.encoded, frame.info, out, check, &sum)) << size;
      EXPECT_EQ(out, frame.content) << size;
      Checksum parts;
      parts.append(sum);
      Checksum whole;
      whole.update(frame.content);
      EXPECT_EQ(parts.hex(), whole.hex()) << size;
    }
  }
}

TEST(RawFrames, FramesWithRunsAreShortened) {
  constexpr size_t kSize = 2 << 20;
  for (const int level : {1, 2, 5}) {
    for (const bool codes : {true, false}) {
      FrameEncoder encoder(level);
      Bytes content = noise(kSize);
      Bytes out;
      EXPECT_FALSE(encoder.shorten(content, codes, out));
      EXPECT_TRUE(out.empty());
      for (const size_t begin : {0U, 7U, 1000U, 100003U}) {
        std::fill_n(content.begin() + static_cast<ptrdiff_t>(begin), kSize / 4, std::byte{127});
        out.clear();
        const std::optional<FrameInfo> frame = encoder.shorten(content, codes, out);
        ASSERT_TRUE(frame) << level << " " << begin;
        EXPECT_LT(out.size(), kSize - kSize / 5);
        EXPECT_EQ(by_zstd(out, kSize), content);
        Bytes ours(kSize);
        EXPECT_FALSE(copy_raw_frame(out, *frame, ours, FrameCheck::kChecksums, nullptr));
        decode_frame(out, *frame, ours);
        EXPECT_EQ(ours, content);
      }
    }
  }
}

// As RFC 8878 says, without the functions that are tested.
TEST(RawFrames, LargeBlocksLieInTheFrameAsDecoded) {
  for (const size_t size : {size_t{40}, size_t{32768}, size_t{2} << 20, (size_t{2} << 20) - 77}) {
    const Frame frame = make_frame(size);
    EXPECT_EQ(frame.encoded.size() % 32, size % 32);
    size_t large = 0;
    size_t decoded = 0;
    size_t at = 9;
    for (bool last = false; !last;) {
      ASSERT_LE(at + 3, frame.encoded.size());
      const uint32_t header = std::to_integer<uint32_t>(frame.encoded[at]) |
                              std::to_integer<uint32_t>(frame.encoded[at + 1]) << 8 |
                              std::to_integer<uint32_t>(frame.encoded[at + 2]) << 16;
      at += 3;
      last = (header & 1) != 0;
      EXPECT_EQ(header >> 1 & 3, 0);
      EXPECT_TRUE(!last || header >> 3 > 0);  // else zstd does not compare the content's size
      if (header >> 3 >= 32768 - 32) {
        EXPECT_EQ(at % 32, decoded % 32) << size << " " << decoded;
        ++large;
      }
      decoded += header >> 3;
      at += header >> 3;
    }
    EXPECT_EQ(decoded, size);
    EXPECT_EQ(at + 4, frame.encoded.size());
    EXPECT_EQ(large, size == 40 ? 0 : (size + 131071) / 131072) << size;
  }
}

// One bit does not change the content: one that zstd's format leaves unused. The checksum of the whole
// file sees it.
TEST(RawFrames, AnyFlippedBitThatMattersIsSeenHereAndByZstd) {
  const Frame frame = make_frame(700);
  int unseen = 0;
  for (size_t bit = 0; bit < 8 * frame.encoded.size(); ++bit) {
    Bytes bad = frame.encoded;
    bad[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    Bytes ours(frame.content.size());
    bool refused = false;
    try {
      decode_frame(bad, frame.info, ours);
    } catch (const Error&) {
      refused = true;
    }
    Bytes theirs(frame.content.size());
    const size_t size = ZSTD_decompress(theirs.data(), theirs.size(), bad.data(), bad.size());
    EXPECT_TRUE(refused || ours == frame.content) << bit;
    EXPECT_TRUE(ZSTD_isError(size) != 0U || theirs == frame.content) << bit;
    unseen += refused ? 0 : 1;
  }
  EXPECT_LE(unseen, 1);
}

}  // namespace
}  // namespace mxfp4
