// The strict parser of safetensors headers: what it accepts, and each fault by its own message.
#include "formats/safetensors/safetensors_header.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "tests/unit/test_bytes.hpp"

namespace mxfp4 {
namespace {

using test::as_bytes;

std::string with_length(const std::string& text, int64_t data_bytes) {
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);
  return file + text + std::string(static_cast<size_t>(data_bytes), 'x');
}

SafetensorsHeader parse(const std::string& file) {
  return parse_safetensors_header(as_bytes(file), static_cast<int64_t>(file.size()));
}

// The message of the refusal of a header before `data_bytes` bytes of data.
std::string refusal_of_file(const std::string& file) {
  try {
    (void)parse(file);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "accepted";
}
std::string header_refusal(const std::string& text, int64_t data_bytes = 4) {
  return refusal_of_file(with_length(text, data_bytes));
}

TEST(SafetensorsHeader, ReadsTensorsInDataOrderAndMetadata) {
  const auto header = parse(with_length(
      R"({"b":{"dtype":"BF16","shape":[2,1],"data_offsets":[3,7]},"__metadata__":{"format":"pt"},)"
      R"("a":{"shape":[3],"data_offsets":[0,3],"dtype":"U8"}}  )",
      7));
  ASSERT_EQ(header.tensors.size(), 2U);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[1].name, "b");
  EXPECT_EQ(header.tensors[1].spec, (TensorSpec{DType::kBF16, {2, 1}}));
  EXPECT_EQ(header.tensors[1].begin, 3);
  EXPECT_EQ(header.tensors[1].end, 7);
  EXPECT_EQ(header.metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
}

TEST(SafetensorsHeader, AcceptsScalarsEmptyTensorsAndNoTensors) {
  EXPECT_EQ(header_refusal(R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                           R"("e":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]},)"
                           R"("f":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})"),
            "accepted");
  EXPECT_EQ(header_refusal("{}", 0), "accepted");
}

TEST(SafetensorsHeader, CountsElementsOfF4) {
  EXPECT_EQ(header_refusal(R"({"a":{"dtype":"F4","shape":[8],"data_offsets":[0,4]}})"), "accepted");
  EXPECT_EQ(header_refusal(R"({"a":{"dtype":"F4","shape":[7],"data_offsets":[0,4]}})"),
            "a: shape [7]: F4 [7] does not fill a whole byte");
}

std::string sound_file() {
  std::vector<SafetensorsTensor> tensors;
  append_tensor(tensors, "layers.0.w13_weight", {DType::kU8, {2, 3, 4}});
  append_tensor(tensors, "quote \" and \xC3\xA9", {DType::kBF16, {5}});
  append_tensor(tensors, "scalar", {DType::kF32, {}});
  return make_safetensors_header(tensors, {{"family", "gpt_oss"}, {"a", "\n"}}, 512) +
         std::string(24 + 10 + 4, 'x');
}

TEST(SafetensorsHeader, WrittenHeaderIsPaddedAndReadsBack) {
  const std::string file = sound_file();
  const auto header = parse(file);
  EXPECT_EQ(header.data_start, 512);
  ASSERT_EQ(header.tensors.size(), 3U);
  EXPECT_EQ(header.tensors[1].name, "quote \" and \xC3\xA9");
  EXPECT_EQ(header.tensors[1].begin, 24);
  EXPECT_EQ(header.tensors[2].end, 38);
  EXPECT_EQ(header.metadata.at("a"), "\n");
  EXPECT_EQ(file, sound_file());
}

TEST(SafetensorsHeader, WritesCompactJson) {
  std::vector<SafetensorsTensor> tensors;
  append_tensor(tensors, "a", {DType::kU8, {2, 2}});
  const std::string header = make_safetensors_header(tensors, {{"k", "v"}}, 1).substr(8);
  EXPECT_EQ(header,
            R"({"__metadata__":{"k":"v"},"a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]}})");
  EXPECT_EQ(make_safetensors_header({}, {}, 16).substr(8), "{}      ");
}

TEST(SafetensorsHeader, WriterRefusesGapsAndBadText) {
  std::vector<SafetensorsTensor> tensors;
  append_tensor(tensors, "a", {DType::kU8, {4}});
  tensors[0].begin += 1;
  EXPECT_THROW((void)make_safetensors_header(tensors, {}, 8), Error);
  EXPECT_THROW((void)make_safetensors_header({}, {{"k", "\xFF"}}, 8), Error);
}

// Whatever the bytes, the parser accepts or throws Error: nothing else, and no bad access.
TEST(SafetensorsHeader, SurvivesRandomCorruption) {
  constexpr unsigned kSeed = 20260518;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const std::string sound = sound_file();
  const std::string alphabet = "{}[]\",:0123456789-.eE \\u\x80\xFF";
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string file = sound;
    const auto edits = 1 + random() % 3;
    for (unsigned i = 0; i < edits; ++i) {
      const size_t at = random() % std::min<size_t>(file.size(), 330);
      switch (random() % 4) {
        case 0:
          file[at] = static_cast<char>(random());
          break;
        case 1:
          file[at] = alphabet[random() % alphabet.size()];
          break;
        case 2:
          file.erase(at, 1 + random() % 8);
          break;
        default:
          file.insert(at, file.substr(random() % file.size(), random() % 40));
      }
      if (file.empty()) break;
    }
    try {
      const auto header = parse(file);
      ++accepted;
      int64_t position = 0;
      for (const auto& tensor : header.tensors) {
        ASSERT_EQ(tensor.begin, position);
        ASSERT_EQ(tensor.end - tensor.begin, tensor.spec.bytes());
        position = tensor.end;
      }
      ASSERT_EQ(header.data_start + position, static_cast<int64_t>(file.size()));
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::kInput);
    }
  }
  EXPECT_GT(accepted, 0);      // names and metadata may change freely
  EXPECT_LT(accepted, 10000);  // the rest may not
}

}  // namespace
}  // namespace mxfp4
