// The texts of the GPU's kernels, which the driver compiles for the GPU at hand.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mxfp4 {

// What one launch of kSumKernel sums.
struct SumPiece {
  uint64_t in = 0;      // blocks of 1024 bytes, at a multiple of 8
  uint64_t blocks = 0;  // their number
  uint64_t sums = 0;    // 8 words for each; memory that the GPU reaches
};
inline constexpr size_t kSumPieces = 16;  // at most, in one launch
inline constexpr unsigned kGroupThreads = 256;
inline constexpr unsigned kSumBlocksInGroup = kGroupThreads / 8;
inline constexpr const char* kSumKernel = "mxfp4_sum_blocks";
inline constexpr const char* kGatherKernel = "mxfp4_gather";

// For cuModuleLoadData.
extern const char* const kSumText;
extern const char* const kGatherText;

}  // namespace mxfp4
