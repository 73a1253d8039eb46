// The loaders' slicing arithmetic against executed vectors and hand-written cases.
#include "lib/load/slice.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"
#include "tests/testdata.hpp"

namespace mxfp4 {
namespace {

nlohmann::json vectors(const std::string& name) {
  std::ifstream in(test::testdata("ingest/vectors") / name);
  return nlohmann::json::parse(in).at("rows");
}

ModelLayers model_of(Loader loader) {
  ModelLayers model;
  model.loader = loader;
  model.family = loader == Loader::kGeneric ? Family::kGeneric : Family::kGptOss;
  model.order = loader == Loader::kGeneric ? W13Order::kHalves : W13Order::kInterleaved;
  model.style = loader == Loader::kGeneric ? Style::kQuark : Style::kGptOss;
  return model;
}

SliceOptions tp(int64_t size, int64_t multiple = 1) {
  SliceOptions options;
  options.parallel.tp_size = size;
  options.round_sizes = [multiple](LayerDims dims) {
    dims.intermediate_size = round_up(dims.intermediate_size, multiple);
    return dims;
  };
  return options;
}

SliceOptions ep(int64_t size, ExpertPlacement placement = ExpertPlacement::kLinear) {
  SliceOptions options = tp(size);
  options.parallel.enable_expert_parallel = true;
  options.placement = placement;
  options.n_group = 2;
  return options;
}

// Runs and returns the kind and words of the refusal.
std::pair<ErrorKind, std::string> refusal(const ModelLayers& model, const LayerDims& dims,
                                          const SliceOptions& options) {
  try {
    (void)slice_ranks(model, dims, options);
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  return {ErrorKind::kInternal, "no refusal"};
}

TEST(Slice, EqualsEveryExecutedRange) {
  size_t rows = 0;
  for (const auto& row : vectors("tp_slices.json")) {
    const std::string loader = row[0];
    const int64_t inter = row[1];
    const int64_t size = row[2];
    const int64_t rank = row[3];
    SliceOptions options = tp(size);
    const int64_t padded = row[4];
    options.round_sizes = [padded](LayerDims dims) {
      dims.intermediate_size = padded;
      return dims;
    };
    const auto model = model_of(loader == "generic" ? Loader::kGeneric : Loader::kGptOssStacked);
    const auto slices = slice_ranks(model, {1, 64, inter}, options);
    const RankSlice& slice = slices.at(static_cast<size_t>(rank));
    EXPECT_EQ(slice.begin, row[5].get<int64_t>()) << row;
    EXPECT_EQ(slice.end, row[6].get<int64_t>()) << row;
    EXPECT_EQ(slice.padded.intermediate_size, padded) << row;
    ++rows;
  }
  EXPECT_EQ(rows, 468U);
}

TEST(Slice, EqualsEveryExecutedExpertMap) {
  size_t rows = 0;
  for (const auto& row : vectors("expert_map.json")) {
    const auto placement =
        row[3] == "linear" ? ExpertPlacement::kLinear : ExpertPlacement::kRoundRobin;
    const LayerDims dims{row[0], 64, 64};
    const auto slices = slice_ranks(model_of(Loader::kGeneric), dims, ep(row[1], placement));
    const RankSlice& slice = slices.at(row[2].get<size_t>());
    EXPECT_EQ(slice.experts, row[5].get<std::vector<int64_t>>()) << row;
    EXPECT_EQ(slice.padded.num_experts, row[4].get<int64_t>()) << row;
    EXPECT_EQ(slice.begin, 0);
    EXPECT_EQ(slice.end, 64);
    ++rows;
  }
  EXPECT_GT(rows, 100U);
}

// The engine's Inkling loader pads the intermediate dimension on ROCm only, strides by the
// checkpoint, and adds experts of zeros where ranks are uneven.
TEST(Slice, InklingPadsOnRocmOnly) {
  ModelLayers model = model_of(Loader::kInklingStacked);
  model.alternating = true;
  SliceOptions options = tp(2, 128);
  EXPECT_EQ(refusal(model, {4, 64, 128}, options).first, ErrorKind::kUnsupported);
  options.rocm = true;
  const auto slices = slice_ranks(model, {4, 64, 128}, options);
  EXPECT_EQ(slices.at(1).begin, 64);
  EXPECT_EQ(slices.at(1).padded.intermediate_size, 128);
  model.flat_scales = true;
  EXPECT_EQ(slice_ranks(model, {4, 64, 128}, options).size(), 2U);
  options.rocm = false;
  EXPECT_NE(refusal(model, {4, 64, 256}, options).second.find("ROCm only"), std::string::npos);
  SliceOptions parallel = ep(3);
  parallel.rocm = true;
  EXPECT_NE(refusal(model, {4, 64, 128}, parallel).second.find("experts of zeros"),
            std::string::npos);
}

TEST(Slice, KeepsTheDownBiasOnTensorParallelRankZeroOnly) {
  const auto by_tp = slice_ranks(model_of(Loader::kGptOssStacked), {4, 64, 64}, tp(2));
  EXPECT_TRUE(by_tp[0].w2_bias);
  EXPECT_FALSE(by_tp[1].w2_bias);
  const auto by_ep = slice_ranks(model_of(Loader::kGptOssStacked), {4, 64, 64}, ep(2));
  EXPECT_TRUE(by_ep[1].w2_bias);
}

// The loaders that know no biases do not say which rank adds w2's.
// SGLang divides I among tensor-parallel ranks only; vLLM asks for an I that every rank divides.
TEST(Slice, GptOssOverExpertsDividesIWhereTheEngineAsksIt) {
  const ModelLayers model = model_of(Loader::kGptOssStacked);
  SliceOptions options = ep(3);
  EXPECT_EQ(refusal(model, {6, 64, 64}, options).second,
            "intermediate size 64 is not divisible by 3 ranks");
  options.divides_by_all_ranks = false;
  EXPECT_EQ(slice_ranks(model, {6, 64, 64}, options).size(), 3U);
}

TEST(Slice, GenericBiasesNeedOneTensorParallelRank) {
  ModelLayers model = model_of(Loader::kGeneric);
  ExpertLayer& layer = model.layers.emplace_back();
  SlotSource& bias = layer.slots[static_cast<size_t>(Slot::kW2Bias)];
  bias.experts.assign(4, {});  // never filled
  EXPECT_EQ(slice_ranks(model, {4, 64, 64}, tp(2)).size(), 2U);
  bias.experts.assign(4, {Extent{0, 0, 128}});
  EXPECT_THROW((void)slice_ranks(model, {4, 64, 64}, tp(2)), Error);
  EXPECT_EQ(slice_ranks(model, {4, 64, 64}, tp(1)).size(), 1U);
  EXPECT_EQ(slice_ranks(model, {4, 64, 64}, ep(2)).size(), 2U);
}

TEST(Slice, RanksAreTheProductOfAllParallelSizes) {
  SliceOptions options = tp(2);
  options.parallel.dp_size = 2;
  const auto slices = slice_ranks(model_of(Loader::kGeneric), {4, 64, 128}, options);
  ASSERT_EQ(slices.size(), 4U);
  EXPECT_EQ(slices[3].tp_rank, 3);
  EXPECT_EQ(slices[3].begin, 96);
}

TEST(Slice, ExpertParallelismOfOneRankIsNone) {
  const auto slices = slice_ranks(model_of(Loader::kGptOssPerExpert), {5, 64, 64}, ep(1));
  ASSERT_EQ(slices.size(), 1U);
  EXPECT_EQ(slices[0].experts.size(), 5U);
}

TEST(Slice, EncodesScalesThatAreFloats) {
  const ModelLayers model = model_of(Loader::kGeneric);
  ExpertLayer layer;
  layer.dims = {1, 64, 128};
  layer.slots[static_cast<size_t>(Slot::kW2WeightScale)] = {DType::kF32, {{Extent{0, 0, 1024}}}};
  const auto slices = slice_ranks(model, layer.dims, tp(2));
  const Assembly assembly = make_assembly(model, layer, Slot::kW2WeightScale, slices.at(1));
  std::vector<float> stored(256);  // 64 rows of 4 blocks
  for (size_t i = 0; i < stored.size(); ++i) stored[i] = std::ldexp(1.0F, static_cast<int>(i % 13));
  std::vector<std::byte> loaded(static_cast<size_t>(assembly.loaded.bytes()));
  ASSERT_EQ(assembly.stored.bytes(), 1024);
  assembly.forward(std::as_bytes(std::span(stored)), loaded);
  ASSERT_EQ(loaded.size(), 128U);
  for (size_t i = 0; i < loaded.size(); ++i) {
    const size_t from = i / 2 * 4 + 2 + i % 2;
    EXPECT_EQ(std::to_integer<size_t>(loaded[i]), 127 + from % 13) << i;
  }
}

TEST(Slice, RoundRobinFallsBackToLinear) {
  const LayerDims dims{4, 64, 64};
  const auto first = [&](const SliceOptions& options) {
    return slice_ranks(model_of(Loader::kGeneric), dims, options)[0].experts;
  };
  const std::vector<int64_t> linear{0, 1};
  const std::vector<int64_t> spread{0, 2};
  SliceOptions options = ep(2, ExpertPlacement::kRoundRobin);
  EXPECT_EQ(first(options), spread);
  options.round_robin = false;
  EXPECT_EQ(first(options), linear);
  options = ep(2, ExpertPlacement::kRoundRobin);
  options.n_group = 1;
  EXPECT_EQ(first(options), linear);
  options.n_group.reset();
  EXPECT_EQ(first(options), linear);
}

TEST(Slice, RoundsHiddenByTheAllToAllKernelFirst) {
  SliceOptions options = tp(1);
  options.round_hidden = [](int64_t hidden) { return hidden + 32; };
  options.round_sizes = [](LayerDims dims) {
    dims.hidden_size *= 2;
    return dims;
  };
  const ModelLayers model = model_of(Loader::kGeneric);
  EXPECT_EQ(slice_ranks(model, {1, 64, 64}, options)[0].padded.hidden_size, 192);
  options.round_sizes = {};  // the method class rounds nothing; the all-to-all kernel does
  EXPECT_EQ(slice_ranks(model, {1, 64, 64}, options)[0].padded.hidden_size, 96);
  options.round = false;
  EXPECT_EQ(slice_ranks(model, {1, 64, 64}, options)[0].padded.hidden_size, 64);
}

TEST(Slice, TheNewerStrideCutsTheCheckpointEvenly) {
  SliceOptions options = tp(2, 128);
  options.generic_stride = GenericStride::kCheckpoint;
  const auto slices = slice_ranks(model_of(Loader::kGeneric), {1, 64, 192}, options);
  EXPECT_EQ(slices[0].end, 96);
  EXPECT_EQ(slices[1].begin, 96);
  EXPECT_EQ(slices[1].end, 192);
  options = tp(4, 128);
  options.generic_stride = GenericStride::kCheckpoint;
  EXPECT_EQ(refusal(model_of(Loader::kGeneric), {1, 64, 192}, options).first,
            ErrorKind::kUnsupported);
}

TEST(Slice, RefusesWhatTheReferenceCannotLoad) {
  const auto stacked = model_of(Loader::kGptOssStacked);
  const auto generic = model_of(Loader::kGeneric);
  const auto expect = [](const std::pair<ErrorKind, std::string>& got, const std::string& words) {
    EXPECT_EQ(got.first, ErrorKind::kUnsupported) << got.second;
    EXPECT_NE(got.second.find(words), std::string::npos) << got.second;
  };
  expect(refusal(generic, {4, 64, 64}, tp(3)), "not divisible by 3 ranks");
  expect(refusal(stacked, {6, 64, 64}, ep(3)), "not divisible by 3 ranks");  // even under EP
  expect(refusal(generic, {2, 64, 64}, ep(4)), "4 expert-parallel ranks for 2 experts");
  expect(refusal(stacked, {5, 64, 64}, ep(2)), "5 experts are not divisible");
  expect(refusal(model_of(Loader::kGptOssPerExpert), {4, 64, 64}, ep(2)), "per-expert gpt-oss");
  expect(refusal(generic, {1, 64, 96}, tp(2)), "shards of 48");
  expect(refusal(stacked, {1, 64, 96}, tp(2)), "shards of 48");
}

TEST(Slice, StackedTensorsUnderQuarkCannotBePadded) {
  const auto model = model_of(Loader::kQuarkStacked);
  EXPECT_EQ(slice_ranks(model, {4, 64, 128}, tp(2, 64)).size(), 2U);
  EXPECT_EQ(slice_ranks(model, {4, 64, 64}, ep(2)).size(), 2U);
  EXPECT_EQ(refusal(model, {4, 64, 96}, tp(1, 64)).first, ErrorKind::kUnsupported);
  EXPECT_EQ(refusal(model, {4, 64, 96}, tp(2, 64)).first, ErrorKind::kUnsupported);
}

TEST(Slice, LoadedInputsSplitOnlyWhatTheySayIsWhole) {
  ModelLayers model = model_of(Loader::kLoaded);
  model.style = Style::kLoaded;
  EXPECT_EQ(slice_ranks(model, {4, 64, 64}, tp(2)).size(), 2U);
  model.splits_intermediate = false;
  EXPECT_EQ(refusal(model, {4, 64, 64}, tp(2)).first, ErrorKind::kUnsupported);
  EXPECT_EQ(slice_ranks(model, {4, 64, 64}, ep(2)).size(), 2U);
  model.splits_experts = false;
  EXPECT_EQ(refusal(model, {4, 64, 64}, ep(2)).first, ErrorKind::kUnsupported);
}

TEST(Slice, RefusesSizesBelowOne) {
  EXPECT_EQ(refusal(model_of(Loader::kGeneric), {1, 64, 64}, tp(0)).first, ErrorKind::kInput);
}

}  // namespace
}  // namespace mxfp4
