// Tensor-parallel ranks share one read of the source, which counts the bytes.
#include <gtest/gtest.h>

#include "formats/conversion/repacker.hpp"
#include "lib/core/dtype.hpp"
#include "lib/load/find_layers.hpp"
#include "lib/load/slice.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {
namespace {

// Tensors of zeros; counts what is read of each.
class CountingSource final : public Source {
 public:
  explicit CountingSource(std::vector<SourceTensor> tensors)
      : Source({.kind = "counting", .tensors = std::move(tensors)}) {
    read_.resize(contents_.tensors.size());
  }
  void read(size_t index, int64_t /*offset*/, MutableBytes out) override {
    std::fill(out.begin(), out.end(), std::byte{0});
    read_[index] += static_cast<int64_t>(out.size());
  }
  [[nodiscard]] int64_t bytes_read(size_t index) const { return read_[index]; }

 private:
  std::vector<int64_t> read_;
};

std::vector<SourceTensor> two_layers() {
  std::vector<SourceTensor> tensors;
  const auto add = [&](const std::string& name, DType dtype, std::vector<int64_t> shape) {
    tensors.push_back({name, {dtype, Shape(std::move(shape))}, "file"});
  };
  for (const std::string layer : {"layers.0.experts.", "layers.1.experts."}) {
    add(layer + "w13_weight", DType::kU8, {6, 512, 64});
    add(layer + "w13_weight_scale", DType::kU8, {6, 512, 4});
    add(layer + "w13_bias", DType::kBF16, {6, 512});
    add(layer + "w2_weight", DType::kU8, {6, 128, 128});
    add(layer + "w2_weight_scale", DType::kU8, {6, 128, 8});
    add(layer + "w2_bias", DType::kBF16, {6, 128});
  }
  return tensors;
}

TEST(ReadOnce, EightTensorParallelRanks) {
  CountingSource source(two_layers());
  std::vector<NamedTensor> names;
  for (const SourceTensor& tensor : source.tensors()) {
    names.push_back({tensor.name, tensor.spec, tensor.file});
  }
  FindOptions find;
  find.family = Family::kGptOss;
  find.attributes = {{"intermediate_size", "256"}, {"hidden_size", "128"}, {"num_experts", "6"}};
  const ModelLayers model = find_expert_layers(names, nullptr, find);
  SliceOptions slice;
  slice.parallel.tp_size = 8;
  slice.round = false;
  const auto ranks = slice_ranks(model, {6, 128, 256}, slice);
  ASSERT_EQ(ranks.size(), 8U);
  const Plan plan = make_plan(model, ranks, {.layout = nullptr, .job_bytes = 4096});
  Repacker repacker(source, model, plan, nullptr, {});
  JobBuffers buffers;
  size_t pieces = 0;
  for (const Job& job : plan.jobs) {
    repacker.work(job, buffers);
    pieces += job.pieces.size();
  }
  EXPECT_EQ(pieces, plan.jobs.size() * 8);
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(source.bytes_read(i), names[i].spec.bytes()) << names[i].name;
  }
}

}  // namespace
}  // namespace mxfp4
