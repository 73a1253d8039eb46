// Frames, the order of tensors in a file, and jobs: hand-made sizes.
#include "lib/plan/plan.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/output.hpp"
#include "lib/plan/frames.hpp"

namespace mxfp4 {
namespace {

TEST(Frames, SmallGranulesShareAFrame) {
  EXPECT_EQ(granules_per_frame(1), kFrameBytes);
  EXPECT_EQ(granules_per_frame(kFrameBytes / 2 + 1), 1);
  EXPECT_EQ(frame_sizes(5, kFrameBytes / 2),
            (std::vector<int64_t>{kFrameBytes, kFrameBytes, kFrameBytes / 2}));
}

TEST(Frames, LargeGranulesAreCutAndEndWithTheirExpert) {
  EXPECT_EQ(frame_sizes(2, kFrameBytes + 3),
            (std::vector<int64_t>{kFrameBytes, 3, kFrameBytes, 3}));
  EXPECT_TRUE(frame_sizes(0, 10).empty());
}

// A stacked model of one layer, with no more than make_plan looks at.
ModelLayers gpt_oss_model(int64_t experts, int64_t hidden, int64_t inter) {
  ModelLayers model;
  model.style = Style::kGptOss;
  model.loader = Loader::kGptOssStacked;
  ExpertLayer layer;
  layer.prefix = "model.layers.0.mlp.experts";
  layer.dims = {experts, hidden, inter};
  LoadedSpec spec{layer.dims, DType::kBF16, false};
  size_t tensor = 0;
  for (Slot slot : kAllSlots) {
    if (!spec.has(slot)) continue;
    SlotSource& source = layer.slots[static_cast<size_t>(slot)];
    source.dtype = spec.tensor(slot).dtype;
    const int64_t bytes = spec.expert(slot).bytes();
    for (int64_t e = 0; e < experts; ++e) source.experts.push_back({{tensor, e * bytes, bytes}});
    ++tensor;
  }
  model.layers.push_back(std::move(layer));
  return model;
}

std::vector<RankSlice> ranks_of(const ModelLayers& model, int64_t tp, bool ep = false) {
  SliceOptions options;
  options.parallel.tp_size = tp;
  options.parallel.enable_expert_parallel = ep;
  options.round_sizes = [](LayerDims dims) { return dims; };
  return slice_ranks(model, model.layers.front().dims, options);
}

TEST(Plan, TensorsOfWholePagesComeFirst) {
  const LoadedSpec loaded{{2, 64, 2048}, DType::kBF16, false};
  const auto tensors = arrange_tensors("p", loaded_outputs(loaded), 2);
  int64_t offset = 0;
  int last_class = 0;
  for (const PlannedTensor& tensor : tensors) {
    EXPECT_EQ(tensor.offset, offset);
    offset += tensor.bytes;
    const int alignment = tensor.bytes % 4096 == 0 ? 0 : tensor.bytes % 64 == 0 ? 1 : 2;
    EXPECT_GE(alignment, last_class) << tensor.name;
    last_class = alignment;
  }
  EXPECT_EQ(tensors.back().name, "p.w2_bias");  // 256 bytes
}

// Every granule of every tensor of every file is in exactly one job, in file order.
void expect_jobs_tile(const Plan& plan) {
  std::vector<int64_t> at(plan.files.size(), 0);
  for (const Job& job : plan.jobs) {
    for (const Piece& piece : job.pieces) {
      const PlannedTensor& tensor = plan.files[piece.file].tensors[piece.tensor];
      EXPECT_EQ(at[piece.file], tensor.offset + piece.first_granule * tensor.granule_bytes);
      at[piece.file] += piece.granules * tensor.granule_bytes;
      EXPECT_GT(job.cost, piece.granules * tensor.granule_bytes);
      const bool ends = piece.first_granule + piece.granules == tensor.granules;
      EXPECT_TRUE(ends || piece.granules % granules_per_frame(tensor.granule_bytes) == 0);
    }
  }
  for (size_t file = 0; file < plan.files.size(); ++file) {
    EXPECT_EQ(at[file], plan.files[file].data_bytes);
  }
}

TEST(Plan, TensorParallelRanksShareTheirJobs) {
  const ModelLayers model = gpt_oss_model(4, 64, 128);
  const Plan plan = make_plan(model, ranks_of(model, 4), {.layout = nullptr});
  EXPECT_EQ(plan.files.size(), 4U);
  for (const Job& job : plan.jobs) EXPECT_EQ(job.pieces.size(), 4U);
  expect_jobs_tile(plan);
}

TEST(Plan, ARankAloneCostsWhatItReads) {
  const ModelLayers model = gpt_oss_model(4, 64, 128);
  const Plan plan = make_plan(model, {ranks_of(model, 4).front()}, {.layout = nullptr});
  for (const Job& job : plan.jobs) {
    const Piece& piece = job.pieces.front();
    const PlannedFile& file = plan.files[piece.file];
    const Slot slot = (*file.outputs)[file.tensors[piece.tensor].output].slot;
    // Whole experts are read, although the rank holds a part of each.
    const int64_t stored = file.assemblies[static_cast<size_t>(slot)]->stored.bytes();
    EXPECT_GE(job.cost, piece.granules * (stored + file.tensors[piece.tensor].granule_bytes));
  }
}

TEST(Plan, ExpertParallelRanksShareNothing) {
  const ModelLayers model = gpt_oss_model(4, 64, 128);
  const Plan plan = make_plan(model, ranks_of(model, 2, true), {.layout = nullptr});
  EXPECT_EQ(plan.files.size(), 2U);
  for (const Job& job : plan.jobs) EXPECT_EQ(job.pieces.size(), 1U);
  expect_jobs_tile(plan);
}

TEST(Plan, SmallJobsTileToo) {
  const ModelLayers model = gpt_oss_model(5, 4096, 2048);
  const auto ranks = ranks_of(model, 1);
  const Plan small = make_plan(model, ranks, {.layout = nullptr, .job_bytes = 1});
  const Plan large = make_plan(model, ranks, {.layout = nullptr, .job_bytes = int64_t{1} << 40});
  expect_jobs_tile(small);
  expect_jobs_tile(large);
  EXPECT_GT(small.jobs.size(), large.jobs.size());
  EXPECT_EQ(large.jobs.size(), large.files.front().tensors.size());
}

TEST(Plan, ManyThreadsHaveWorkWithOneLayerToo) {
  const ModelLayers model = gpt_oss_model(32, 1024, 1024);
  const auto ranks = ranks_of(model, 1);
  const Plan one = make_plan(model, ranks, {.layout = nullptr});
  const Plan many = make_plan(model, ranks, {.layout = nullptr, .threads = 16});
  expect_jobs_tile(many);
  EXPECT_LT(one.jobs.size(), 16U);
  EXPECT_GE(many.jobs.size(), 24U);
}

}  // namespace
}  // namespace mxfp4
