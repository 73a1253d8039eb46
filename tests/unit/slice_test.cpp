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

}  // namespace
}  // namespace mxfp4
