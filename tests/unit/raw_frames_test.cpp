// Frames of raw and RLE blocks: zstd decodes them, so does our own decoder, and both refuse damage.
#include "formats/blob/raw_frames.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include <random>

#include "formats/blob/seekable_zstd.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

using Bytes = std::vector<std::byte>;
using Runs = std::vector<ByteRun>;

struct Frame {
  Bytes content;
  Bytes encoded;
  FrameInfo info;
};

// Random bytes with `value` in the runs.
Frame make_frame(size_t size, const Runs& runs, std::byte value = {}) {
  std::mt19937_64 draw(size);
  Frame frame;
  frame.content.resize(size);
  for (std::byte& b : frame.content) b = static_cast<std::byte>(draw());
  for (const ByteRun& run : runs) {
    std::fill_n(frame.content.begin() + run.begin, run.bytes, value);
  }
  const auto blocks = cut_into_blocks(static_cast<int64_t>(size), runs);
  frame.info = write_raw_frame(frame.content, blocks, nullptr, [&](ConstBytes bytes) {
    frame.encoded.insert(frame.encoded.end(), bytes.begin(), bytes.end());
  });
  EXPECT_EQ(frame.info.encoded, static_cast<int64_t>(frame.encoded.size()));
  EXPECT_EQ(frame.info.encoded, raw_frame_bytes(blocks));
  return frame;
}

Bytes by_zstd(const Frame& frame) {
  Bytes out(frame.content.size());
  EXPECT_EQ(ZSTD_getFrameContentSize(frame.encoded.data(), frame.encoded.size()), out.size());
  const size_t size =
      ZSTD_decompress(out.data(), out.size(), frame.encoded.data(), frame.encoded.size());
  EXPECT_EQ(size, out.size()) << ZSTD_getErrorName(size);
  return out;
}

Bytes by_us(const Bytes& encoded, const FrameInfo& info) {
  Bytes out(static_cast<size_t>(info.decoded));
  EXPECT_TRUE(decode_raw_frame(encoded, info, out));
  return out;
}

TEST(RawFrames, EveryDecoderGivesTheContent) {
  constexpr int64_t kBlock = 128 << 10;
  const std::vector<std::pair<size_t, Runs>> cases = {
      {1, {}},
      {1, {{0, 1}}},
      {40, {{8, 32}}},
      {kBlock, {}},
      {kBlock + 1, {}},
      {3 * kBlock, {{0, 3 * kBlock}}},
      {2 << 20, {{kBlock - 40, 2 * kBlock + 80}, {(2 << 20) - 64, 64}}},
      {1536 * 600, [] {
         Runs rows;
         for (int64_t row = 0; row < 600; ++row) rows.push_back({row * 1536 + 1440, 96});
         return rows;
       }()}};
  for (const auto& [size, runs] : cases) {
    for (const std::byte value : {std::byte{0}, std::byte{127}}) {
      const Frame frame = make_frame(size, runs, value);
      EXPECT_EQ(by_zstd(frame), frame.content) << size;
      EXPECT_EQ(by_us(frame.encoded, frame.info), frame.content) << size;
    }
  }
}

TEST(RawFrames, RunsAreFoundWhereverTheyBegin) {
  const Frame noise = make_frame(20000, {});
  for (int64_t begin = 0; begin < 40; ++begin) {
    for (const int64_t bytes : {kLeastRun, kLeastRun + 7, int64_t{9000}}) {
      Bytes content = noise.content;
      std::fill_n(content.begin() + begin, bytes, std::byte{5});
      std::fill_n(content.end() - bytes, bytes, std::byte{9});
      // Random bytes beside a run may happen to prolong it.
      const Runs runs = find_runs(content);
      ASSERT_EQ(runs.size(), 2U) << begin << " " << bytes;
      EXPECT_LE(runs[0].begin, begin);
      EXPECT_GE(runs[0].begin + runs[0].bytes, begin + bytes);
      EXPECT_LT(runs[0].bytes, bytes + 8);
      EXPECT_EQ(runs[1].begin + runs[1].bytes, 20000);
      EXPECT_GE(runs[1].bytes, bytes);
    }
    Bytes content = noise.content;
    std::fill_n(content.begin() + 100 + begin, kLeastRun - 8, std::byte{5});
    EXPECT_EQ(find_runs(content), Runs{}) << begin;
  }
  const Bytes one(5000, std::byte{1});
  EXPECT_EQ(find_runs(one), (Runs{{0, 5000}}));
  EXPECT_EQ(find_runs(ConstBytes(one).first(3)), Runs{});
}

// As RFC 8878 says, without the functions that are tested.
TEST(RawFrames, LargeBlocksLieInTheFrameAsDecoded) {
  const std::vector<std::pair<size_t, Runs>> cases = {
      {40, {}},
      {32768, {}},
      {2 << 20, {}},
      {(2 << 20) - 77, {}},
      {2 << 20, {{100003, 5001}, {1000000, 300000}}}};
  for (const auto& [size, runs] : cases) {
    const Frame frame = make_frame(size, runs);
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
      const bool repeated = (header >> 1 & 3) == 1;
      EXPECT_TRUE(!last || header >> 3 > 0);  // else zstd does not compare the content's size
      if (!repeated && header >> 3 >= 32768 - 32) {
        EXPECT_EQ(at % 32, decoded % 32) << size << " " << decoded;
        ++large;
      }
      decoded += header >> 3;
      at += repeated ? 1 : header >> 3;
    }
    EXPECT_EQ(decoded, size);
    EXPECT_EQ(at + 4, frame.encoded.size());
    EXPECT_EQ(large, size == 40 ? 0 : runs.empty() ? (size + 131071) / 131072 : 14U) << size;
  }
}

// zstd up to 1.4.3 does not take a frame whose first block is an RLE block.
TEST(RawFrames, NoFrameBeginsWithAnRleBlock) {
  const std::vector<FrameBlock> blocks = cut_into_blocks(64, Runs{{0, 64}});
  ASSERT_GE(blocks.size(), 2U);
  EXPECT_EQ(blocks[0], (FrameBlock{0, 1, false}));
  EXPECT_EQ(blocks[1].begin, 1);
  EXPECT_TRUE(blocks[1].repeated);
}

// Two bits do not change the content: one that zstd's format leaves unused, and one that makes an
// RLE block of a raw block of one byte. The checksum of the whole file sees those.
TEST(RawFrames, AnyFlippedBitThatMattersIsSeenHereAndByZstd) {
  const Frame frame = make_frame(700, {{0, 40}, {300, 100}, {660, 40}});
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
  EXPECT_LE(unseen, 2);
}

// Reads the frame as from a file that begins with it.
bool read_straight(const Bytes& encoded, const FrameInfo& info, MutableBytes out, FrameCheck check,
                   ChecksumPart* sum = nullptr) {
  Bytes window(static_cast<size_t>(kFrameWindowBytes));
  return read_raw_frame(info, out, check, sum, window,
                        [&](int64_t offset, std::span<const MutableBytes> parts) {
                          const std::byte* from = encoded.data() + offset;
                          for (const MutableBytes& part : parts) {
                            std::copy_n(from, part.size(), part.begin());
                            from += part.size();
                          }
                        });
}

TEST(RawFrames, RegularFramesAreReadStraightToTheirPlace) {
  for (const size_t size : {1U, 131072U, 131073U, 500000U, 1U << 20}) {
    const Frame frame = make_frame(size, {});
    for (const FrameCheck check : {FrameCheck::kSizes, FrameCheck::kChecksums}) {
      Bytes out(size);
      ChecksumPart sum;
      sum.begin(0);
      ASSERT_TRUE(read_straight(frame.encoded, frame.info, out, check, &sum)) << size;
      EXPECT_EQ(out, frame.content) << size;
      Checksum parts;
      parts.append(sum);
      Checksum whole;
      whole.update(frame.content);
      EXPECT_EQ(parts.hex(), whole.hex()) << size;
    }
  }
}

}  // namespace
}  // namespace mxfp4
