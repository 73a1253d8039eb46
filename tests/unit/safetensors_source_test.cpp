// Safetensors files and checkpoint directories, and how open_source tells containers apart.
#include "formats/checkpoint/safetensors_source.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/checkpoint/open_source.hpp"
#include "formats/checksum/sha256.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "formats/source/natural_order.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "tests/unit/containers.hpp"
#include "tests/unit/scratch_path.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;
using test::kContainers;

class SafetensorsSource : public testing::Test {
 protected:
  SafetensorsSource() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    dir_ = test::scratch_path(std::string("safetensors_source.") + info->name());
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }
  ~SafetensorsSource() override { fs::remove_all(dir_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name, std::ios::binary) << text;
  }
  // A file with one-byte tensors of these names; each byte is `value`.
  void write_tensors(const std::string& name, const std::vector<std::string>& tensors,
                     char value = 'x', const std::map<std::string, std::string>& metadata = {}) {
    std::vector<SafetensorsTensor> list;
    for (const std::string& tensor : tensors) append_tensor(list, tensor, {DType::kU8, {1}});
    write(name, make_safetensors_header(list, metadata, 8) + std::string(tensors.size(), value));
  }
  void write_index(const std::string& weight_map) {
    write("model.safetensors.index.json", R"({"metadata":{},"weight_map":)" + weight_map + "}");
  }
  std::vector<std::string> names() {
    const auto source = open_source(dir_);
    std::vector<std::string> out;
    for (const auto& tensor : source->tensors()) out.push_back(tensor.name);
    return out;
  }
  std::string refusal(const std::string& below = "") {
    return refusal_of(below.empty() ? dir_ : dir_ / below);
  }
  std::string refusal_of(const fs::path& path) {
    try {
      (void)open_source(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      std::string text = error.what();
      const std::string prefix = dir_.string() + "/";
      for (size_t at = 0; (at = text.find(prefix)) != std::string::npos;) {
        text.erase(at, prefix.size());
      }
      return text;
    }
    return "accepted";
  }

  fs::path dir_;
};

using Names = std::vector<std::string>;

TEST_F(SafetensorsSource, GivesTheGoldenBytes) {
  std::ifstream in(kContainers / "tensors.json");
  const auto golden = nlohmann::json::parse(in).at("tensors");
  const auto source = open_source(kContainers / "safetensors");
  EXPECT_EQ(source->kind(), "safetensors");
  EXPECT_EQ(source->tensors().size(), 12U);
  EXPECT_NE(source->config_json().value().find("gpt_oss"), std::string::npos);
  for (size_t i = 0; i < source->tensors().size(); ++i) {
    const SourceTensor& tensor = source->tensors()[i];
    const int64_t size = tensor.spec.bytes();
    const std::vector<std::byte> bytes = test::read_all(*source, i);
    std::string hex;
    for (std::byte b : sha256(bytes)) {
      const char* digits = "0123456789abcdef";
      hex += {digits[std::to_integer<int>(b) / 16], digits[std::to_integer<int>(b) % 16]};
    }
    EXPECT_EQ(hex, golden.at(tensor.name).at("sha256").get<std::string>());
    EXPECT_EQ(dtype_name(tensor.spec.dtype), golden.at(tensor.name).at("dtype").get<std::string>());
    std::vector<std::byte> copy(static_cast<size_t>(size / 2));
    source->read(i, size / 2, copy);
    EXPECT_TRUE(std::equal(copy.begin(), copy.end(), bytes.begin() + size / 2));
  }
  std::vector<std::byte> whole(static_cast<size_t>(source->tensors()[0].spec.bytes()));
  EXPECT_THROW(source->read(0, 1, whole), Error);
  EXPECT_THROW(source->read(0, -1, whole), Error);
}

// A broken download leaves links to files that are not there; a checkpoint without those files
// would be read in another way.
TEST_F(SafetensorsSource, RefusesLinksThatLeadNowhere) {
  write_tensors("model.safetensors", {"a"});
  EXPECT_EQ(refusal(), "accepted");
  for (const char* file : {"config.json", "model.safetensors.index.json"}) {
    const std::string name = file;
    for (const std::string& target : {std::string("../blobs/missing"), name}) {
      fs::create_symlink(target, dir_ / name);
      EXPECT_TRUE(refusal().starts_with(name + ": ")) << refusal();
      fs::remove(dir_ / name);
    }
  }
  fs::create_symlink("../blobs/missing", dir_ / "config.json");
  EXPECT_TRUE(refusal("model.safetensors").starts_with("config.json: "));
}

TEST_F(SafetensorsSource, VisitsFilesInNaturalOrder) {
  write_tensors("model-10.safetensors", {"j"});
  write_tensors("model-9.safetensors", {"i"});
  write_tensors("model-0.safetensors", {"a"});
  EXPECT_EQ(names(), (Names{"a", "i", "j"}));
}

TEST_F(SafetensorsSource, LeavesHiddenFilesOut) {
  write_tensors("model.safetensors", {"a"});
  write("._model.safetensors", "a Mac's note on the file");
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(SafetensorsSource, NaturalOrderIsStrict) {
  EXPECT_TRUE(natural_less("a-2", "a-10"));
  EXPECT_FALSE(natural_less("a-10", "a-2"));
  EXPECT_TRUE(natural_less("a-02", "a-2"));
  EXPECT_FALSE(natural_less("a-2", "a-02"));
  EXPECT_FALSE(natural_less("a-2", "a-2"));
  EXPECT_TRUE(natural_less("a-99999999999999999999", "a-100000000000000000000"));
  EXPECT_TRUE(natural_less("a", "a1"));
}

TEST_F(SafetensorsSource, ReadsOnlyConsolidatedFilesIfThereAreAny) {
  write_tensors("consolidated.safetensors", {"a"});
  write_tensors("model.safetensors", {"a", "b"});
  EXPECT_EQ(names(), (Names{"a"}));
}

TEST_F(SafetensorsSource, IndexSelectsFilesNotTensors) {
  write_tensors("one.safetensors", {"a", "b"});
  write_tensors("two.safetensors", {"a"});
  write_index(R"({"a":"one.safetensors"})");
  EXPECT_EQ(names(), (Names{"a", "b"}));
}

// The engine takes only the names of files from the index.
TEST_F(SafetensorsSource, OtherTensorsMayBeWhereTheyAre) {
  write_tensors("one.safetensors", {"a", "experts.a"});
  write_tensors("two.safetensors", {"b"});
  write_index(R"({"a":"two.safetensors","b":"two.safetensors","head":"one.safetensors"})");
  EXPECT_EQ(refusal(), "accepted");
}

TEST_F(SafetensorsSource, RefusesATensorInTwoFiles) {
  write_tensors("one.safetensors", {"a", "b"});
  write_tensors("two.safetensors", {"b"});
  EXPECT_EQ(refusal(), "two.safetensors: b: also in one.safetensors");
}

TEST_F(SafetensorsSource, FilesMustAgreeOnBindingMetadata) {
  write_tensors("one.safetensors", {"a"}, 'x', {{"family", "gpt_oss"}, {"who", "me"}});
  write_tensors("two.safetensors", {"b"}, 'x', {{"family", "gpt_oss"}, {"who", "you"}});
  EXPECT_EQ(open_source(dir_)->attributes().at("family"), "gpt_oss");
  write_tensors("two.safetensors", {"b"}, 'x', {{"family", "generic"}});
  EXPECT_EQ(refusal(),
            "two.safetensors: __metadata__: family is \"generic\", another file of this checkpoint "
            "says \"gpt_oss\"");
}

TEST_F(SafetensorsSource, FilesOfALoadedInputMustAgreeOnWhatIsReadOfThem) {
  const std::vector<std::string> tensors = {"w13_weight", "w2_weight_scale", "w13_bias"};
  const auto disagree = [&](const std::string& key, const std::string& one,
                            const std::string& two) {
    int layer = 0;
    for (const std::string& value : {one, two}) {
      std::vector<std::string> names;
      names.reserve(tensors.size());
      for (const auto& tensor : tensors) names.push_back(std::to_string(layer) + "." + tensor);
      const std::map<std::string, std::string> stated{{key, value}};
      write_tensors(std::to_string(layer++) + ".safetensors", names, 'x',
                    value.empty() ? std::map<std::string, std::string>{} : stated);
    }
    return refusal();
  };
  for (const char* key : {"bias_dtype", "scale_fill", "tp_size", "ep_size"}) {
    EXPECT_EQ(disagree(key, "1", "2"), "1.safetensors: __metadata__: " + std::string(key) +
                                           " is \"2\", another file of this checkpoint says \"1\"");
    EXPECT_EQ(disagree(key, "1", "1"), "accepted");
  }
  EXPECT_EQ(disagree("bias_dtype", "", "F32"),
            "1.safetensors: __metadata__: bias_dtype is \"F32\", another file of this checkpoint "
            "says \"not stated\"");
  EXPECT_EQ(
      disagree("scale_fill", "1", ""),
      "1.safetensors: __metadata__: scale_fill is \"0\", another file of this checkpoint says "
      "\"1\"");
  EXPECT_EQ(disagree("scale_fill", "0", ""), "accepted");
  EXPECT_EQ(disagree("tp_size", "1", ""), "accepted");
}

// A file need not state an attribute that none of its tensors depends on: bias_dtype without
// biases, nothing without expert tensors.
TEST_F(SafetensorsSource, OtherFilesOfALoadedInputNeedNotState) {
  write_tensors("0.safetensors", {"0.w13_weight", "0.w13_bias"}, 'x',
                {{"scale_fill", "1"}, {"bias_dtype", "F32"}});
  write_tensors("1.safetensors", {"1.w13_weight"}, 'x', {{"scale_fill", "1"}});
  write_tensors("2.safetensors", {"norm.weight", "head.bias"});
  EXPECT_EQ(refusal(), "accepted");
}

// A blob is opened as its checkpoint, by its manifest.
TEST_F(SafetensorsSource, RefusesLayersThatArePackedAndReadsManifests) {
  write_tensors("layer-00000.safetensors", {"a"}, 'x', {{"mxfp4_repack.layout", "xpu/1"}});
  EXPECT_EQ(refusal(),
            "layer-00000.safetensors: already packed: a layer file that this program wrote");
  EXPECT_EQ(refusal("layer-00000.safetensors"),
            "layer-00000.safetensors: already packed: a layer file that this program wrote");
  for (const char* place : {".", "mxfp4_repack", "rank-00-of-08", "mxfp4_repack/rank-01-of-02"}) {
    fs::remove_all(dir_);
    fs::create_directories(dir_ / place);
    write(std::string(place) + "/mxfp4_repack.json", "{}");
    write_tensors("rest-00000.safetensors", {"a"});
    EXPECT_NE(refusal().find("mxfp4_repack.json: format: missing"), std::string::npos);
  }
}

}  // namespace
}  // namespace mxfp4
