// The rest of a checkpoint: how it is cut into files, and what they hold.
#include "formats/conversion/rest_writer.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "formats/checkpoint/safetensors_source.hpp"
#include "lib/core/dtype.hpp"
#include "tests/unit/containers.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// Tensors in memory, read by rows as a chunked container is.
class RowSource final : public Source {
 public:
  RowSource() : Source({.kind = "rows"}) {}
  void add(std::string name, DType dtype, std::vector<int64_t> dims) {
    const TensorSpec spec{dtype, Shape(std::span<const int64_t>(dims))};
    std::vector<std::byte> data(static_cast<size_t>(spec.bytes()));
    for (size_t i = 0; i < data.size(); ++i) {
      data[i] = static_cast<std::byte>((i * 7 + tensors().size()) & 0xFF);
    }
    contents_.tensors.push_back({std::move(name), spec, "memory"});
    data_.push_back(std::move(data));
  }
  void read(size_t index, int64_t offset, MutableBytes out) override {
    std::memcpy(out.data(), data_.at(index).data() + offset, out.size());
    largest_ = std::max(largest_, out.size());
  }

  [[nodiscard]] const std::vector<std::byte>& data(size_t index) const { return data_[index]; }
  [[nodiscard]] size_t largest_read() const { return largest_; }

 private:
  std::vector<std::vector<std::byte>> data_;
  size_t largest_ = 0;
};

class RestWriter : public testing::Test {
 protected:
  RestWriter() : directory_(fs::path(testing::TempDir()) / unique_name()) {
    fs::create_directories(directory_);
  }
  ~RestWriter() override { fs::remove_all(directory_); }

  std::vector<ManifestFile> write(Source& source, const RestPlan& plan) {
    std::vector<ManifestFile> entries;
    write_rest(source, plan, Directory(directory_),
               {.progress = [](int64_t) {},
                .kept = [](const std::string&) { return false; },
                .finished = [&](const ManifestFile& file) { entries.push_back(file); }});
    return entries;
  }
  void put(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name) << text;
  }

  fs::path directory_;

 private:
  static std::string unique_name() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    return std::string("rest_writer_") + info->name() + std::to_string(::getpid());
  }
};

TEST_F(RestWriter, FilesStayBelowTheLimit) {
  RowSource source;
  std::vector<size_t> rest;
  for (int i = 0; i < 20; ++i) {
    source.add("t" + std::to_string(i), DType::kU8, {i == 7 ? 90'000 : 9'000});
    rest.push_back(static_cast<size_t>(i));
  }
  constexpr int64_t kLimit = 50'000;
  const RestPlan plan = plan_rest(source, rest, kLimit);
  size_t tensors = 0;
  for (const ManifestFile& file : plan.planned()) {
    EXPECT_TRUE(file.name == kIndexName || file.size <= kLimit || file.size > 90'000);
  }
  for (const RestFile& file : plan.files) tensors += file.tensors.size();
  EXPECT_EQ(tensors, 20);
  EXPECT_GE(plan.files.size(), 6);
  for (const ManifestFile& file : write(source, plan)) {
    EXPECT_EQ(file.size, static_cast<int64_t>(fs::file_size(directory_ / file.name)));
  }
  EXPECT_EQ(open_safetensors(directory_)->tensors().size(), 20);
}

TEST_F(RestWriter, OneLongRowIsReadInPiecesToo) {
  RowSource source;
  source.add("flat", DType::kF32, {1, 5'000'001});
  write(source, plan_rest(source, {0}));
  EXPECT_LE(source.largest_read(), size_t{8} << 20);
  const auto copy = open_safetensors(directory_);
  const std::vector<std::byte> bytes = test::read_all(*copy, 0);
  EXPECT_TRUE(std::ranges::equal(bytes, source.data(0)));
}

TEST_F(RestWriter, SideFilesAreWhatIsNeitherWeightsNorHidden) {
  for (const char* name : {"config.json", "merges.txt", "chat_template.jinja", "LICENSE",
                           "modeling.py", "tokenizer.model"}) {
    put(name, "x");
  }
  for (const char* name : {"model-00001-of-00002.safetensors", "model.safetensors.index.json",
                           "pytorch_model.bin", "pytorch_model.bin.index.json", ".gitattributes",
                           "consolidated.00.pth", "mxfp4_repack.json", "layer.safetensors.zst"}) {
    put(name, "x");
  }
  fs::create_directory(directory_ / "original");
  put("huge.txt", "");
  fs::resize_file(directory_ / "huge.txt", static_cast<uintmax_t>(kMaxSideFile) + 1);
  std::vector<std::string> warnings;
  std::vector<std::string> names;
  for (const SideFile& file : find_side_files(directory_, warnings)) names.push_back(file.name);
  EXPECT_EQ(names, (std::vector<std::string>{"LICENSE", "chat_template.jinja", "config.json",
                                             "merges.txt", "modeling.py", "tokenizer.model"}));
  ASSERT_EQ(warnings.size(), 1);
  EXPECT_EQ(warnings[0], "huge.txt: 67108865 bytes, not copied");
}

}  // namespace
}  // namespace mxfp4
