// kernels::xxh3_sum_blocks for an NVIDIA GPU, in PTX, which the driver compiles for the GPU at
// hand. Written by hand, since no Debian package has a compiler for it: PTX ISA 6.3, from Volta on.
// ctest has no GPU (tests/capi/gpu.sh has a stand-in for the driver); on a real one,
// tests/gpu/loader_check.py turns bits of blobs, which these sums have to find.
//
//     xxh3_sum_blocks(SumPiece pieces[kSumPieces])
//
// A group's y says which piece it belongs to. Eight threads take a block, one for each accumulator,
// 256 threads a group, as many groups for each piece as the one with the most blocks has blocks /
// 32, rounded up. With x the word of a stripe that belongs to thread i and key = x ^ secret, the
// thread adds up low(key) * high(key); the sum of x belongs to its neighbour, i ^ 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mxfp4 {

// What one launch sums.
struct SumPiece {
  uint64_t in = 0;      // blocks of 1024 bytes, at a multiple of 8
  uint64_t blocks = 0;  // their number
  uint64_t sums = 0;    // 8 words for each; memory that the GPU reaches
};
inline constexpr size_t kSumPieces = 16;  // at most, in one launch
inline constexpr unsigned kSumThreads = 256;
inline constexpr unsigned kSumBlocksInGroup = kSumThreads / 8;
inline constexpr const char* kSumKernel = "xxh3_sum_blocks";

// The text for cuModuleLoadData.
[[nodiscard]] std::string sum_ptx();

}  // namespace mxfp4
