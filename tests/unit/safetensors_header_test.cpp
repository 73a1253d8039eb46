// The strict parser of safetensors headers: what it accepts, and each fault by its own message.
#include "formats/safetensors/safetensors_header.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

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

TEST(SafetensorsHeader, RefusesBadLengths) {
  EXPECT_EQ(refusal_of_file(""), "not a safetensors file: 0 bytes, the header's length takes 8");
  EXPECT_EQ(refusal_of_file("1234567"),
            "not a safetensors file: 7 bytes, the header's length takes 8");
  EXPECT_EQ(refusal_of_file(std::string("\xFF\0\0\0\0\0\0\0{}", 10)),
            "header length 255 runs past the end of the file of 10 bytes");
  EXPECT_EQ(refusal_of_file(std::string("\0\0\0\0\0\0\0\x80{}", 10)),
            "header length 9223372036854775808, at most 100000000 is allowed");
  EXPECT_EQ(refusal_of_file(std::string("\x01\xE1\xF5\x05\0\0\0\0{}", 10)),
            "header length 100000001, at most 100000000 is allowed");
}

TEST(SafetensorsHeader, RefusesWhatIsNotOneJsonObject) {
  EXPECT_EQ(header_refusal(""), "header does not begin with a JSON object");
  EXPECT_EQ(header_refusal("[]"), "header does not begin with a JSON object");
  EXPECT_EQ(header_refusal(" {}"), "header does not begin with a JSON object");
  EXPECT_EQ(header_refusal("{]"),
            "header: not JSON: column 2: expected a key in double quotes or '}', found ']'");
  EXPECT_EQ(header_refusal("{} {}"),
            "header: not JSON: column 4: expected the end of the text, found '{'");
  EXPECT_EQ(header_refusal(R"({"a":)"),
            "header: not JSON: column 6: expected a value, found the end of the text");
  EXPECT_EQ(header_refusal(std::string("{}\0{", 4)), "header: not JSON: NUL byte at position 2");
  EXPECT_EQ(header_refusal("{\"\xC0\x80\":1}"), "header: not UTF-8: byte 0xc0 at position 2");
  EXPECT_EQ(header_refusal("{\"\xED\xA0\x80\":1}"), "header: not UTF-8: byte 0xed at position 2");
  EXPECT_EQ(header_refusal("{\"a\":1}\xFF"), "header: not UTF-8: byte 0xff at position 7");
}

TEST(SafetensorsHeader, RefusesDuplicateKeys) {
  const std::string a = R"("a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
  EXPECT_EQ(header_refusal("{" + a + "," + a + "}"), "a: tensor name appears twice in the header");
  EXPECT_EQ(header_refusal(R"({"__metadata__":{},"__metadata__":{}})"),
            "header: key __metadata__ appears twice");
  EXPECT_EQ(header_refusal(R"({"__metadata__":{"k":"1","k":"1"}})"),
            R"(__metadata__: key "k" appears twice)");
  EXPECT_EQ(header_refusal(R"({"a":{"dtype":"U8","dtype":"U8"}})"), "a: dtype: appears twice");
  EXPECT_EQ(header_refusal(R"({"a":{"shape":[4],"shape":[4]}})"), "a: shape: appears twice");
  EXPECT_EQ(header_refusal(R"({"a":{"data_offsets":[0,4],"data_offsets":[0,4]}})"),
            "a: data_offsets: appears twice");
}

TEST(SafetensorsHeader, RefusesWrongMembers) {
  EXPECT_EQ(header_refusal(R"({"a":1})"), "a: expected an object, found a number");
  EXPECT_EQ(header_refusal(R"({"a":[[[[]]]]})"), "a: expected an object, found an array");
  EXPECT_EQ(header_refusal(R"({"a":{"dtype":{}}})"),
            "a: dtype: expected a string, found an object");
  EXPECT_EQ(header_refusal(R"({"a":{"dtype":null}})"), "a: dtype: expected a string, found null");
  EXPECT_EQ(header_refusal(R"({"a":{"dtype":"F9"}})"), "a: dtype: unknown dtype \"F9\"");
  EXPECT_EQ(header_refusal(R"({"a":{"shape":"4"}})"),
            "a: shape: expected an array, found a string");
  EXPECT_EQ(header_refusal(R"({"a":{"shape":[[4]]}})"),
            "a: shape: expected non-negative integers, found an array");
  EXPECT_EQ(header_refusal(R"({"a":{"strides":[1]}})"),
            "a: unknown key \"strides\", expected dtype, shape and data_offsets");
  EXPECT_EQ(header_refusal(R"({"a":{"shape":[4],"data_offsets":[0,4]}})"), "a: dtype: missing");
  EXPECT_EQ(header_refusal(R"({"a":{"dtype":"U8","data_offsets":[0,4]}})"), "a: shape: missing");
  EXPECT_EQ(header_refusal(R"({"a":{"dtype":"U8","shape":[4]}})"), "a: data_offsets: missing");
  EXPECT_EQ(header_refusal(R"({"":{}})"), "a tensor has an empty name");
  EXPECT_EQ(header_refusal(R"({"a\nb":{}})"), R"(tensor name "a\x0ab" holds a control character)");
}

TEST(SafetensorsHeader, RefusesWrongMetadata) {
  EXPECT_EQ(header_refusal(R"({"__metadata__":3})"),
            "__metadata__: expected an object, found a number");
  EXPECT_EQ(header_refusal(R"({"__metadata__":{"k":3}})"),
            "__metadata__: k: expected a string, found a number");
  EXPECT_EQ(header_refusal(R"({"__metadata__":{"k":{}}})"),
            "__metadata__: k: expected a string, found an object");
  const auto entries = [](int64_t count) {
    std::string text = R"({"__metadata__":{"0":"")";
    for (int64_t i = 1; i < count; ++i) text += ",\"" + std::to_string(i) + "\":\"\"";
    return text + "}}";
  };
  EXPECT_EQ(header_refusal(entries(kMaxSafetensorsMetadata), 0), "accepted");
  EXPECT_EQ(header_refusal(entries(kMaxSafetensorsMetadata + 1), 0),
            "__metadata__: more than 65536 entries");
}

TEST(SafetensorsHeader, RefusesWrongShapes) {
  const auto shape = [](const std::string& dims) {
    return header_refusal(R"({"a":{"dtype":"U8","data_offsets":[0,4],"shape":)" + dims + "}}");
  };
  EXPECT_EQ(shape("[4]"), "accepted");
  EXPECT_EQ(shape("[-4]"), "a: shape: expected non-negative integers, found -4");
  EXPECT_EQ(shape("[4.0]"), "a: shape: expected non-negative integers, found 4.0");
  EXPECT_EQ(shape("[true]"), "a: shape: expected non-negative integers, found true");
  EXPECT_EQ(shape("[\"4\"]"), "a: shape: expected non-negative integers, found a string");
  EXPECT_EQ(shape("[9223372036854775808]"),
            "a: shape: expected non-negative integers, found 9223372036854775808");
  EXPECT_EQ(shape("[1,1,1,1,1,1,1,4]"), "accepted");
  EXPECT_EQ(shape("[1,1,1,1,1,1,1,1,4]"), "a: shape: more than 8 dimensions");
  EXPECT_EQ(shape("[4294967296,4294967296]"),
            "a: shape [4294967296, 4294967296]: a product of sizes overflows 64 bits");
  EXPECT_EQ(shape("[2305843009213693952]"),
            "a: shape [2305843009213693952]: a product of sizes overflows 64 bits");
  EXPECT_EQ(shape("[5]"), "a: U8 [5] needs 5 bytes, its data_offsets span 4");
}

TEST(SafetensorsHeader, RefusesWrongOffsets) {
  const auto offsets = [](const std::string& a, const std::string& b) {
    return header_refusal(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + a +
                          R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + b + "}}");
  };
  EXPECT_EQ(offsets("[0,2]", "[2,4]"), "accepted");
  EXPECT_EQ(offsets("[2,4]", "[0,2]"), "accepted");
  EXPECT_EQ(offsets("[0]", "[2,4]"), "a: data_offsets: 1 numbers, expected 2");
  EXPECT_EQ(offsets("[0,2,2]", "[2,4]"), "a: data_offsets: more than 2 numbers, expected 2");
  EXPECT_EQ(offsets("[-2,0]", "[2,4]"),
            "a: data_offsets: expected non-negative integers, found -2");
  EXPECT_EQ(offsets("[2,0]", "[2,4]"), "a: data_offsets: end 0 lies before begin 2");
  EXPECT_EQ(offsets("[0,2]", "[1,3]"), "b: its data overlaps the data of \"a\" by 1 bytes");
  EXPECT_EQ(offsets("[0,2]", "[0,2]"), "b: its data overlaps the data of \"a\" by 2 bytes");
  EXPECT_EQ(offsets("[0,2]", "[3,5]"), "b: a gap of 1 bytes lies before its data");
  EXPECT_EQ(offsets("[1,3]", "[3,5]"), "a: a gap of 1 bytes lies before its data");
  const std::string two = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  EXPECT_EQ(header_refusal(two, 2), "accepted");
  EXPECT_EQ(header_refusal(two, 3), "1 bytes follow the data of the last tensor");
  EXPECT_EQ(header_refusal(two, 1),
            "a: its data ends at byte 2, but the file holds only 1 bytes of data");
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
