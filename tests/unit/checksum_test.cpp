// XXH3-128 in parts against xxHash itself, and the vector kernel against its definition.
#include "formats/checksum/checksum.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <xxhash.h>

#include <algorithm>
#include <random>

#include "lib/kernels/instruction_sets.hpp"
#include "tests/unit/test_bytes.hpp"

namespace mxfp4 {
namespace {

using test::random_bytes;

std::string reference(ConstBytes bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

// Lengths around every rule: short ones, a stripe, a block, several blocks, more than a batch.
std::vector<size_t> lengths() {
  std::vector<size_t> sizes;
  for (size_t size = 0; size <= 2200; ++size) sizes.push_back(size);
  for (size_t blocks : {3, 255, 256, 257, 600}) {
    for (int off : {-65, -64, -63, -1, 0, 1, 63, 64, 65, 500}) {
      sizes.push_back(blocks * 1024 + static_cast<size_t>(off + 100) - 100);
    }
  }
  return sizes;
}

TEST(Checksum, EqualsXxhashAtEveryLength) {
  const auto bytes = random_bytes(700 << 10, 1);
  for (size_t size : lengths()) {
    Checksum sum;
    sum.update(ConstBytes(bytes).first(size));
    EXPECT_EQ(sum.hex(), reference(ConstBytes(bytes).first(size))) << size;
    EXPECT_EQ(sum.size(), static_cast<int64_t>(size));
  }
}

TEST(Checksum, UpdatesAndPartsOfAnySizeGiveTheSame) {
  const auto bytes = random_bytes(300 << 10, 2);
  std::mt19937_64 draw(3);
  for (int round = 0; round < 300; ++round) {
    const ConstBytes all = ConstBytes(bytes).first(draw() % bytes.size());
    const size_t longest = round % 3 == 0 ? 100 : round % 3 == 1 ? 3000 : 200'000;
    Checksum sum;
    ChecksumPart part;
    for (ConstBytes rest = all; !rest.empty();) {
      const size_t take = std::min(rest.size(), draw() % longest + (round % 7 == 0 ? 1024 : 0));
      ConstBytes piece = rest.first(take);
      rest = rest.subspan(take);
      if (draw() % 4 == 0) {
        sum.update(piece);
        continue;
      }
      part.begin(sum.size() + static_cast<int64_t>(1024 * (draw() % 3)));
      while (!piece.empty()) {
        const size_t step = std::min<size_t>(piece.size(), draw() % 50'000);
        part.update(piece.first(step));
        piece = piece.subspan(step);
      }
      sum.append(part);
    }
    EXPECT_EQ(sum.hex(), reference(all)) << "round " << round;
  }
}

TEST(Checksum, PartsWhoseBlocksAreSummedElsewhere) {
  const auto bytes = random_bytes(300 << 10, 5);
  std::mt19937_64 draw(6);
  for (int round = 0; round < 100; ++round) {
    const ConstBytes all = ConstBytes(bytes).first(draw() % bytes.size());
    const size_t longest = round % 2 == 0 ? 3000 : 100'000;
    Checksum sum;
    for (ConstBytes rest = all; !rest.empty();) {
      const ConstBytes piece = rest.first(std::min(rest.size(), 1 + draw() % longest));
      const int64_t begin = sum.size();
      const auto to_block = static_cast<size_t>(ChecksumPart::first_block(begin) - begin);
      std::vector<uint64_t> sums;
      if (to_block < piece.size()) {
        const ConstBytes behind = piece.subspan(to_block);
        const size_t blocks = behind.size() / ChecksumBlocks::kBlock;
        sums.resize(blocks * ChecksumBlocks::kLanes);
        kernels::xxh3_sum_blocks(behind.data(), blocks, sums.data());
      }
      ChecksumPart part;
      part.assemble(begin, piece, sums);
      sum.append(part);
      rest = rest.subspan(piece.size());
    }
    EXPECT_EQ(sum.hex(), reference(all)) << "round " << round;
  }
}

TEST(Xxh3Blocks, EveryTargetEqualsTheDefinition) {
  const auto bytes = random_bytes(9 * 1024 + 3, 5);
  const std::vector<int64_t> targets = kernels::instruction_set_targets();
  ASSERT_FALSE(targets.empty());
  for (int64_t target : targets) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    for (size_t start : {0, 1, 3}) {
      std::vector<uint64_t> sums(9 * kernels::kXxh3Lanes);
      kernels::xxh3_sum_blocks(bytes.data() + start, 9, sums.data());
      for (size_t b = 0; b < 9; ++b) {
        kernels::Xxh3Lanes lanes{};
        for (size_t n = 0; n < 16; ++n) {
          kernels::xxh3_add_stripe(bytes.data() + start + b * 1024 + n * 64, 8 * n, lanes);
        }
        for (size_t i = 0; i < lanes.size(); ++i) EXPECT_EQ(sums[8 * b + i], lanes[i]);
      }
    }
    std::vector<uint64_t> sums(200 * kernels::kXxh3Lanes);
    std::mt19937_64 draw(7);
    std::ranges::generate(sums, draw);
    for (size_t blocks : {0, 1, 2, 63, 64, 65, 199, 200}) {
      kernels::Xxh3Lanes want{1, 2, 3, 4, 5, 6, 7, ~uint64_t{0}};
      kernels::Xxh3Lanes got = want;
      for (size_t b = 0; b < blocks; ++b) kernels::xxh3_end_block(sums.data() + 8 * b, want);
      kernels::xxh3_end_blocks(sums.data(), blocks, got);
      EXPECT_EQ(got, want) << blocks << " blocks";
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace
}  // namespace mxfp4
