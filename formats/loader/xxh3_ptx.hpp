// kernels::xxh3_sum_blocks for an NVIDIA GPU, in PTX, which the driver compiles for the GPU at hand.
// Written by hand, since no Debian package has a compiler for it: PTX ISA 6.3, from Volta on.
//
//     xxh3_sum_blocks(const uint64_t* in, uint64_t blocks, uint64_t* sums)
//
// in: `blocks` blocks of 1024 bytes at a multiple of 8; sums: 8 words a block; memory that the GPU
// reaches. Eight threads take a block, one for each accumulator, 256 threads a group, as many groups
// as blocks / 32, rounded up. With x the word of a stripe that belongs to thread i and key = x ^
// secret, the thread adds up low(key) * high(key); the sum of x belongs to its neighbour, i ^ 1.
#pragma once

#include <string>

namespace mxfp4 {

inline constexpr unsigned kSumThreads = 256;
inline constexpr unsigned kSumBlocksInGroup = kSumThreads / 8;
inline constexpr const char* kSumKernel = "xxh3_sum_blocks";

// The text for cuModuleLoadData.
[[nodiscard]] std::string sum_ptx();

}  // namespace mxfp4
