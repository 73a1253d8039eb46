// Tensor-parallel ranks share one read of the source: a source that is not mapped counts the bytes.
// Every byte of a mapped source that was looked at is let go.
#include <gtest/gtest.h>

#include "formats/conversion/repacker.hpp"
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

// Tensors side by side in one block of zeros; counts how often each byte is let go.
class MappedSource final : public Source {
 public:
  explicit MappedSource(std::vector<SourceTensor> tensors)
      : Source({.kind = "mapped", .tensors = std::move(tensors)}) {
    size_t bytes = 0;
    for (const SourceTensor& tensor : contents_.tensors) {
      begin_.push_back(bytes);
      bytes += static_cast<size_t>(tensor.spec.bytes());
    }
    bytes_.resize(bytes);
    released_.resize(bytes);
  }
  void read(size_t /*index*/, int64_t /*offset*/, MutableBytes /*out*/) override { FAIL(); }
  [[nodiscard]] bool maps(size_t /*index*/) const override { return true; }
  [[nodiscard]] ConstBytes view(size_t index, int64_t offset, int64_t size) const override {
    return ConstBytes(bytes_).subspan(begin_[index] + static_cast<size_t>(offset),
                                      static_cast<size_t>(size));
  }
  void release(ConstBytes view) const noexcept override {
    for (const std::byte& byte : view) ++released_[static_cast<size_t>(&byte - bytes_.data())];
  }
  [[nodiscard]] const std::vector<int>& released() const { return released_; }

 private:
  std::vector<size_t> begin_;
  std::vector<std::byte> bytes_;
  mutable std::vector<int> released_;
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
    repacker.read(job, buffers);
    repacker.work(job, buffers);
    pieces += job.pieces.size();
  }
  EXPECT_EQ(pieces, plan.jobs.size() * 8);
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(source.bytes_read(i), names[i].spec.bytes()) << names[i].name;
  }
}

// Each expert's gate, down and up in this order, so that the tensors of w13 do not lie together;
// and biases that the reference never fills.
std::vector<SourceTensor> tensors_by_expert() {
  std::vector<SourceTensor> tensors;
  for (int64_t expert = 0; expert < 3; ++expert) {
    for (const std::string word : {"gate_proj", "down_proj", "up_proj"}) {
      const bool down = word == "down_proj";
      const std::string name =
          "model.layers.0.mlp.experts." + std::to_string(expert) + "." + word + ".weight";
      tensors.push_back({name, {DType::kU8, down ? Shape{64, 16} : Shape{32, 32}}, "file"});
      tensors.push_back(
          {name + "_scale", {DType::kU8, down ? Shape{64, 1} : Shape{32, 2}}, "file"});
    }
  }
  return tensors;
}

ModelLayers model_by_expert(const std::vector<SourceTensor>& tensors) {
  std::vector<NamedTensor> names;
  names.reserve(tensors.size());
  for (const SourceTensor& tensor : tensors) names.push_back({tensor.name, tensor.spec, "file"});
  ModelConfig config;
  config.file = "config.json";
  config.model_type = "qwen3_moe";
  config.quantization = Quantization{"mxfp4", "", "", {}};
  config.hidden_size = 64;
  config.intermediate_size = 32;
  config.num_experts = 3;
  config.num_hidden_layers = 1;
  return find_expert_layers(names, &config, {});
}

TEST(ReadOnce, AllThatIsMappedIsLetGo) {
  MappedSource source(tensors_by_expert());
  const ModelLayers model = model_by_expert(source.tensors());
  const auto ranks = slice_ranks(model, {3, 64, 32}, {});
  const Plan plan = make_plan(model, ranks, {.layout = nullptr, .job_bytes = 2048});
  Repacker repacker(source, model, plan, nullptr, {});
  JobBuffers buffers;
  for (const Job& job : plan.jobs) {
    repacker.read(job, buffers);
    repacker.work(job, buffers);
    repacker.release(job);
  }
  EXPECT_EQ(source.released(), std::vector<int>(source.released().size(), 1));
}

}  // namespace
}  // namespace mxfp4
