// Which known defects of the reference revision a target, its sizes and its order of rows run into.
#include <gtest/gtest.h>

#include <set>

#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

Target target_of(Backend backend, Family family, Platform platform, std::string arch) {
  Target target;
  target.backend = backend;
  target.family = family;
  target.platform = platform;
  target.arch = std::move(arch);
  return target;
}

// How many of the defects hold whose text contains `words`; all others must not hold.
size_t defects(const Target& target, LayerDims padded, W13Order order, std::string_view words) {
  size_t count = 0;
  for (const DefectRow& row : revision_by_name("vllm-2026-05-18").defects) {
    if (!row.holds({target, padded, order})) continue;
    EXPECT_NE(row.text.find(words), std::string_view::npos) << row.text;
    ++count;
  }
  return count;
}

TEST(Defects, GenericConvertersThatMixRows) {
  const LayerDims dims{2, 256, 256};
  const Target aiter =
      target_of(Backend::AITER_MXFP4_BF16, Family::kGeneric, Platform::kRocm, "gfx950");
  EXPECT_EQ(defects(aiter, dims, W13Order::kHalves, "gate and up rows end up mixed"), 1U);
  const Target triton = target_of(Backend::TRITON, Family::kGeneric, Platform::kCuda, "sm100");
  EXPECT_EQ(defects(triton, dims, W13Order::kHalves, "hidden dimension"), 1U);
  const Target unfused =
      target_of(Backend::TRITON_UNFUSED, Family::kGeneric, Platform::kCuda, "sm100");
  EXPECT_EQ(defects(unfused, dims, W13Order::kHalves, ""), 0U);
}

TEST(Defects, HalvesGivenToAConverterOfInterleavedRows) {
  const std::set<Backend> wrong = {
      Backend::FLASHINFER_TRTLLM_MXFP4_MXFP8,
      Backend::FLASHINFER_TRTLLM_MXFP4_BF16,
      Backend::FLASHINFER_CUTLASS_MXFP4_MXFP8,
      Backend::FLASHINFER_CUTLASS_MXFP4_BF16,
      Backend::AITER_MXFP4_BF16,
      Backend::AITER_MXFP4_FP8,
      Backend::TRITON,
  };
  for (Backend backend : all_backends()) {
    SCOPED_TRACE(backend_name(backend));
    const Target target = target_of(backend, Family::kGptOss, Platform::kCuda, "sm100");
    const LayerDims dims{2, 256, 256};
    EXPECT_EQ(defects(target, dims, W13Order::kHalves, "all gate rows and then all up rows"),
              wrong.contains(backend) ? 1U : 0U);
    EXPECT_EQ(defects(target, dims, W13Order::kInterleaved, ""), 0U);
  }
}

TEST(Defects, HopperKernelMisreadsHalfGroups) {
  for (Backend backend : {Backend::TRITON, Backend::TRITON_UNFUSED}) {
    const auto count = [&](const char* arch, int64_t hidden, int64_t inter,
                           std::string_view words) {
      return defects(target_of(backend, Family::kGptOss, Platform::kCuda, arch), {2, hidden, inter},
                     W13Order::kInterleaved, words);
    };
    EXPECT_EQ(count("sm90", 288, 192, "misreads w13"), 1U);
    EXPECT_EQ(count("sm90", 2880, 96, "misreads w2"), 1U);
    EXPECT_EQ(count("sm90", 288, 96, "misreads w"), 2U);
    EXPECT_EQ(count("sm90", 2880, 2880, ""), 0U);
    EXPECT_EQ(count("sm100", 288, 96, ""), 0U);
  }
}

}  // namespace
}  // namespace mxfp4
