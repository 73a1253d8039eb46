// Which layout, refusal or known defect the Triton and AITER backends get at the reference
// revision.
#include <gtest/gtest.h>

#include <set>

#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/triton_layouts.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/resolve.hpp"
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

const LayoutRow* row_of(const Target& target) {
  return find_layout_row(revision_by_name("vllm-2026-05-18"), target);
}

const Layout* layout_of(Backend backend, Family family, Platform platform, std::string arch) {
  const LayoutRow* row = row_of(target_of(backend, family, platform, std::move(arch)));
  return row == nullptr ? nullptr : row->layout;
}

TEST(TritonAiterRows, TritonFollowsTheArch) {
  struct Want {
    Platform platform;
    const char* arch;
    const Layout* plain;
    const Layout* k_interleaved;
  };
  const std::vector<Want> table = {
      {Platform::kCuda, "sm80", &kTritonStridedLayout, &kTritonStridedKInterleavedLayout},
      {Platform::kCuda, "sm89", &kTritonStridedLayout, &kTritonStridedKInterleavedLayout},
      {Platform::kCuda, "sm90", &kTritonHopperLayout, &kTritonHopperKInterleavedLayout},
      {Platform::kCuda, "sm100", &kTritonBlackwellLayout, &kTritonBlackwellKInterleavedLayout},
      {Platform::kCuda, "sm103", &kTritonBlackwellLayout, &kTritonBlackwellKInterleavedLayout},
      {Platform::kCuda, "sm120", &kTritonBlackwellLayout, &kTritonBlackwellKInterleavedLayout},
      {Platform::kRocm, "gfx950", &kTritonCdna4Layout, &kTritonCdna4KInterleavedLayout},
      {Platform::kRocm, "gfx942", &kTritonStridedLayout, &kTritonStridedKInterleavedLayout},
      {Platform::kRocm, "gfx1201", &kTritonStridedLayout, &kTritonStridedKInterleavedLayout},
      {Platform::kXpu, "", &kTritonStridedLayout, &kTritonStridedKInterleavedLayout},
  };
  for (const Want& want : table) {
    SCOPED_TRACE(want.arch);
    EXPECT_EQ(layout_of(Backend::TRITON, Family::kGptOss, want.platform, want.arch), want.plain);
    EXPECT_EQ(layout_of(Backend::TRITON, Family::kGeneric, want.platform, want.arch),
              want.k_interleaved);
    for (Family family : {Family::kGptOss, Family::kGeneric}) {
      EXPECT_EQ(layout_of(Backend::TRITON_UNFUSED, family, want.platform, want.arch), want.plain);
    }
  }
}

TEST(TritonAiterRows, TritonNeedsTheArch) {
  EXPECT_EQ(row_of(target_of(Backend::TRITON, Family::kGptOss, Platform::kCuda, "")), nullptr);
  EXPECT_EQ(row_of(target_of(Backend::TRITON, Family::kGptOss, Platform::kRocm, "")), nullptr);
}

TEST(TritonAiterRows, Aiter) {
  const auto aiter = [](Backend backend, Family family) {
    return row_of(target_of(backend, family, Platform::kRocm, "gfx950"));
  };
  EXPECT_EQ(aiter(Backend::AITER_MXFP4_BF16, Family::kGptOss)->layout, &kAiterW4a16Layout);
  EXPECT_EQ(aiter(Backend::AITER_MXFP4_BF16, Family::kGeneric)->layout, &kAiterW4a16Layout);
  EXPECT_EQ(aiter(Backend::AITER_MXFP4_FP8, Family::kGptOss)->layout, &kAiterW4a8Fp8Layout);
  EXPECT_EQ(aiter(Backend::AITER_MXFP4_MXFP4, Family::kGptOss)->layout, &kAiterW4a4Layout);
  for (Backend backend : {Backend::AITER_MXFP4_FP8, Backend::AITER_MXFP4_MXFP4}) {
    const LayoutRow* row = aiter(backend, Family::kGeneric);
    ASSERT_NE(row, nullptr);
    EXPECT_EQ(row->layout, nullptr);
    EXPECT_EQ(row->refusal, "Unsupported mxfp4_backend for Mxfp4MoEMethod: Mxfp4MoeBackend." +
                                std::string(backend_name(backend)) +
                                ". Expected TRTLLM, Triton, or AITER backend.");
    EXPECT_EQ(row->refusal_type, "ValueError");
  }
  const LayoutRow* other =
      row_of(target_of(Backend::AITER_MXFP4_FP8, Family::kGptOss, Platform::kRocm, "gfx942"));
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->layout, nullptr);
  EXPECT_NE(other->refusal.find("gfx950"), std::string_view::npos);
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

TEST(TritonAiterRows, GenericConvertersThatMixRows) {
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

TEST(TritonAiterRows, HalvesGivenToAConverterOfInterleavedRows) {
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

TEST(TritonAiterRows, HopperKernelMisreadsHalfGroups) {
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

TEST(TritonAiterRows, AitersTritonKernelPairsGateAndUpRows) {
  const auto at = [](std::string_view revision, Family family, std::string arch) {
    return find_layout_row(revision_by_name(revision),
                           target_of(Backend::AITER_TRITON_MXFP4_BF16, family, Platform::kRocm,
                                     std::move(arch)))
        ->layout;
  };
  EXPECT_EQ(at("vllm-0.30.0", Family::kGeneric, "gfx950"), &kTritonCdna4RowInterleavedLayout);
  EXPECT_EQ(at("vllm-0.30.0", Family::kGeneric, "gfx942"), &kTritonStridedRowInterleavedLayout);
  EXPECT_EQ(at("vllm-0.30.0", Family::kGptOss, "gfx950"), &kTritonCdna4Layout);
  EXPECT_EQ(at("vllm-0.30.0", Family::kGptOss, "gfx942"), &kTritonStridedLayout);
  for (const std::string_view revision : {"vllm-0.31.0", "vllm-0.32.0", "vllm-0.33.0"}) {
    EXPECT_EQ(at(revision, Family::kGeneric, "gfx950"), &kTriton38Cdna4RowInterleavedLayout);
    EXPECT_EQ(at(revision, Family::kGeneric, "gfx942"), &kTriton38StridedRowInterleavedLayout);
    EXPECT_EQ(at(revision, Family::kGptOss, "gfx950"), &kTriton38Cdna4Layout);
    EXPECT_EQ(at(revision, Family::kGptOss, "gfx942"), &kTriton38StridedLayout);
  }
}

// From 0.31.0 on, ROCm builds take triton_kernels 3.8; 0.33.0 tiles scales on gfx1250 first.
TEST(TritonAiterRows, RocmTakesTritonKernels38) {
  struct Want {
    const char* revision;
    const char* arch;
    int64_t world;
    const Layout* plain;
    const Layout* k_interleaved;
    const Layout* w4a8;
  };
  const Want plain{"",
                   "",
                   1,
                   &kTriton38StridedLayout,
                   &kTriton38StridedKInterleavedLayout,
                   &kAiterW4a8Triton38StridedLayout};
  const Want cdna4{"",
                   "",
                   1,
                   &kTriton38Cdna4Layout,
                   &kTriton38Cdna4KInterleavedLayout,
                   &kAiterW4a8Triton38Cdna4Layout};
  const Want tiled{"",
                   "",
                   1,
                   &kTriton38Gfx1250Layout,
                   &kTriton38Gfx1250KInterleavedLayout,
                   &kAiterW4a8Triton38Gfx1250Layout};
  const auto on = [](Want want, const char* revision, const char* arch, int64_t world) {
    want.revision = revision, want.arch = arch, want.world = world;
    return want;
  };
  std::vector<Want> table;
  for (const char* revision : {"vllm-0.31.0", "vllm-0.32.0", "vllm-0.33.0"}) {
    table.insert(table.end(), {on(cdna4, revision, "gfx950", 1), on(cdna4, revision, "gfx950", 2),
                               on(plain, revision, "gfx950", 4), on(plain, revision, "gfx942", 1)});
  }
  table.insert(table.end(),
               {on(plain, "vllm-0.31.0", "gfx1250", 1), on(plain, "vllm-0.32.0", "gfx1250", 1),
                on(tiled, "vllm-0.33.0", "gfx1250", 1), on(tiled, "vllm-0.33.0", "gfx1250", 4)});
  for (const Want& want : table) {
    SCOPED_TRACE(std::string(want.revision) + " " + want.arch);
    const auto at = [&](Backend backend, Family family) {
      Target target = target_of(backend, family, Platform::kRocm, want.arch);
      target.world_size = want.world;
      return find_layout_row(revision_by_name(want.revision), target)->layout;
    };
    EXPECT_EQ(at(Backend::TRITON, Family::kGptOss), want.plain);
    EXPECT_EQ(at(Backend::TRITON, Family::kGeneric), want.k_interleaved);
    for (const Family family : {Family::kGptOss, Family::kGeneric}) {
      EXPECT_EQ(at(Backend::TRITON_UNFUSED, family), want.plain);
      EXPECT_EQ(at(Backend::AITER_MXFP4_FP8, family), want.w4a8);
    }
  }
  // CUDA and XPU keep theirs, and without an arch there is none.
  const auto other = [](Platform platform, std::string arch) {
    return find_layout_row(revision_by_name("vllm-0.33.0"),
                           target_of(Backend::TRITON, Family::kGptOss, platform, std::move(arch)));
  };
  EXPECT_EQ(other(Platform::kCuda, "sm80")->layout, &kTritonStridedLayout);
  EXPECT_EQ(other(Platform::kXpu, "")->layout, &kTritonStridedLayout);
  EXPECT_EQ(other(Platform::kRocm, ""), nullptr);
}

// 0.23.0 and 0.24.0 keep gate and up apart; the callers of 0.32.0 and later hand the converter a
// switch that does so.
TEST(TritonAiterRows, AiterKeepsGateAndUpApart) {
  Target target = target_of(Backend::AITER_MXFP4_BF16, Family::kGeneric, Platform::kRocm, "gfx950");
  const auto at = [&](std::string_view revision) {
    return find_layout_row(revision_by_name(revision), target)->layout;
  };
  EXPECT_EQ(at("vllm-0.23.0"), &kAiterBf16SeparatedLayout);
  EXPECT_EQ(at("vllm-0.24.0"), &kAiterBf16SeparatedLayout);
  target.env["VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4"] = "1";
  EXPECT_EQ(at("vllm-0.32.0"), &kAiterBf16HalvesLayout) << "AITER itself is off";
  target.env["VLLM_ROCM_USE_AITER"] = "1";
  EXPECT_EQ(at("vllm-0.31.0"), &kAiterBf16HalvesLayout) << "does not know the variable";
  EXPECT_EQ(at("vllm-0.32.0"), &kAiterBf16SeparatedLayout);
  EXPECT_EQ(at("vllm-0.33.0"), &kAiterBf16SeparatedLayout);
  target.activation = "situ";
  EXPECT_EQ(at("vllm-0.32.0"), &kAiterBf16SituLayout);
  target.arch = "gfx1250";
  EXPECT_EQ(at("vllm-0.30.0"), &kTritonStridedLayout);
  EXPECT_EQ(at("vllm-0.31.0"), &kTriton38StridedLayout) << "goes through triton_kernels 3.8";
  EXPECT_EQ(at("vllm-0.33.0"), &kTriton38Gfx1250Layout);
}

TEST(TritonAiterRows, AitersFp4KernelInterleavesRowsByActivation) {
  Target target =
      target_of(Backend::AITER_TRITON_MXFP4_MXFP4, Family::kGptOss, Platform::kRocm, "gfx1250");
  const auto now = [&] { return find_layout_row(revision_by_name("vllm-0.33.0"), target)->layout; };
  target.activation = "silu";
  EXPECT_EQ(now(), &kAiterTritonW4a4Layout);
  for (const char* name : {"swigluoai", "swigluoai_uninterleave"}) {
    target.activation = name;
    EXPECT_EQ(now(), &kAiterTritonW4a4RowInterleavedLayout) << name;
  }
  target.family = Family::kGeneric;
  EXPECT_EQ(now(), &kAiterTritonW4a4RowInterleavedLayout);
}

// Without a config the activation of gpt-oss is known, that of another model is not.
TEST(TritonAiterRows, AitersFp4KernelAsksForTheActivation) {
  const RuleSet& rules = revision_by_name("vllm-0.33.0");
  DeploymentFacts facts;
  facts.platform = Platform::kRocm;
  facts.arch = "gfx1250";
  const auto row_of = [&](Family family) {
    const Deployment deployment = resolve_deployment(rules, facts, nullptr, nullptr);
    Decision decision;
    decision.backend = Backend::AITER_TRITON_MXFP4_MXFP4;
    return find_layout_row(rules, make_target(deployment, decision, family));
  };
  EXPECT_EQ(row_of(Family::kGptOss)->layout, &kAiterTritonW4a4RowInterleavedLayout);
  EXPECT_TRUE(row_of(Family::kGeneric)->asks);
  facts.activation = "silu";
  EXPECT_EQ(row_of(Family::kGeneric)->layout, &kAiterTritonW4a4Layout);
}

}  // namespace
}  // namespace mxfp4
