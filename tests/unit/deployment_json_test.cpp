// What is not JSON, and where; a target's file; a quantization that the user gives.
#include "formats/config/deployment_json.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "formats/config/quantization_override.hpp"
#include "formats/json/json_syntax.hpp"
#include "formats/json/python_json.hpp"
#include "lib/core/error.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

template <class Parse>
std::string parse_refusal(Parse&& parse) {
  try {
    (void)parse();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "accepted";
}

TEST(JsonFault, NamesPlaceExpectedAndFound) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"", "column 1: expected a value, found nothing"},
      {"nonsense", "column 1: expected a value, found 'nonsense'"},
      {"{'a': 1}", "column 2: expected a key in double quotes or '}', found a single quote"},
      {"{\"a\": 1,\n \"b\": 2,\n}", "line 3, column 1: expected a key in double quotes, found '}'"},
      {"{\"a\" 1}\n", "column 6: expected ':', found '1'"},
      {"{\"a\": [1 2]}", "column 10: expected ',' or ']', found '2'"},
      {"{\"\xc3\xa9\": }", "column 7: expected a value, found '}'"},
      {"{\n\"a\": 1", "line 2, column 7: expected ',' or '}', found the end of the text"},
      {"{\"a\": 1,\n", "column 9: expected a key in double quotes, found the end of the text"},
      {"[1,]", "column 4: expected a value, found ']'"},
      {"[0x1]", "column 3: expected ',' or ']', found 'x1'"},
      {"[-]", "column 3: expected a digit, found ']'"},
      {"[True]", "column 2: expected a value or ']', found 'True'"},
      {"[\"a\nb\"]",
       "line 1, column 4: expected '\"' at the end of a string, or an escape such as \\n, found "
       "the end of the line"},
      {"[\"\\x\"]", "column 3: expected an escape such as \\n or \\\\, found '\\x'"},
      {"[\"abc", "column 6: expected '\"' at the end of a string, found the end of the text"},
      {"{} {}", "column 4: expected the end of the text, found '{'"},
      {"\xEF\xBB\xBF[1", "column 3: expected ',' or ']', found the end of the text"},
  };
  for (const auto& [text, fault] : faults) EXPECT_EQ(json_fault(text), fault) << text;
}

// It finds a fault exactly where the parser does.
TEST(JsonFault, AgreesWithTheParser) {
  const std::string whole = R"({"a": [1, -2.5e+3, 0, true, false, null, {}],)"
                            R"( "b\"\u00e9\ud83d\ude00": {"c": "\\\n"}, "d": []})";
  EXPECT_EQ(json_fault(whole), "");
  const std::string letters = "{}[]\",:\\u0129deEDfFlnrtx-+. \n";
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = whole;
    for (int changes = 1 + i % 3; changes > 0; --changes) {
      const size_t at = random() % text.size();
      const char letter = letters[random() % letters.size()];
      if (random() % 3 == 0) {
        text.erase(at, 1);
      } else if (random() % 2 == 0) {
        text.insert(at, 1, letter);
      } else {
        text[at] = letter;
      }
    }
    bool accepted = true;
    try {
      accepted = !nlohmann::json::parse(text).is_discarded();
    } catch (const nlohmann::json::parse_error&) {
      accepted = false;
    } catch (const nlohmann::json::out_of_range&) {
      // A number that is JSON, but larger than any double.
    }
    refused += accepted ? 0 : 1;
    EXPECT_EQ(json_fault(text).empty(), accepted) << text << "\n" << json_fault(text);
  }
  EXPECT_GT(refused, 5000);
}

TEST(DeploymentJson, RefusesTextThatIsNoJson) {
  EXPECT_EQ(
      parse_refusal([] { return parse_python_json("{"); }),
      "not JSON: column 2: expected a key in double quotes or '}', found the end of the text");
  EXPECT_EQ(parse_refusal([] { return parse_python_json("\"\xff\""); }),
            "not UTF-8: byte 0xff at position 1");
  EXPECT_EQ(parse_refusal([] { return parse_python_json(std::string_view("{}\0{", 4)); }),
            "not JSON: NUL byte at position 2");
  EXPECT_EQ(parse_refusal([] { return parse_python_json(std::string(100000, '[')); }),
            "JSON is nested deeper than 64 levels");
  EXPECT_NO_THROW((void)parse_python_json("\"" + std::string(100, '[') + "\\\"[\""));
}

TEST(DeploymentJson, TargetFile) {
  DeploymentFacts r = parse_target(R"({"platform":"rocm","arch":"gfx950",
      "libs":{"aiter":"0.1.13","triton_kernels":null},"env":{"VLLM_ROCM_USE_AITER":"1"}})");
  EXPECT_EQ(r.platform, Platform::kRocm);
  EXPECT_EQ(r.libs, (std::set<std::string>{"aiter", "triton_kernels"}));
  EXPECT_EQ(r.env.at("VLLM_ROCM_USE_AITER"), "1");
  r = parse_target(R"({"libs":["humming"]})");
  EXPECT_FALSE(r.platform || r.arch);
  EXPECT_EQ(r.libs, (std::set<std::string>{"humming"}));
  EXPECT_FALSE(parse_target("{}").libs);
  const auto refused = [](const char* text) {
    return parse_refusal([&] { return parse_target(text); });
  };
  EXPECT_EQ(refused(R"({"gpu":"H100"})"),
            "gpu: unknown key, expected sglang, vllm, platform, arch, libs, cuda_compiler, env");
  EXPECT_EQ(parse_target(R"({"cuda_compiler":"12.9"})").cuda_compiler, "12.9");
  for (const char* version :
       {"", "12", "12.", ".9", "12.9.1", "new", "-1", "-12.9", "12.-9", "99999999999.0"}) {
    EXPECT_EQ(refused(fmt::format(R"({{"cuda_compiler":"{}"}})", version).c_str()),
              fmt::format("cuda_compiler: expected a version such as 12.9, found \"{}\"", version));
  }
  EXPECT_EQ(refused(R"({"libs":"aiter"})"), "libs: expected a list or an object, found string");
  EXPECT_EQ(refused(R"({"libs":{"aiter":1}})"),
            "libs: expected versions that are strings or null, found number");
  EXPECT_EQ(refused(R"({"arch":90})"), "arch: expected a string, found number");
  EXPECT_EQ(refused("[]"), "expected a JSON object, found array");
  EXPECT_EQ(refused(R"({"arch":"sm90","arch":"sm100"})"),
            "key \"arch\" appears twice in one object");
}

TEST(QuantizationOverride, TheFirstFaultIsNamed) {
  const auto refused = [](std::string_view text) {
    return parse_refusal(
        [&] { return parse_quantization_config(revision_by_name("vllm-2026-05-18"), text); });
  };
  EXPECT_EQ(refused(R"({"linear":3,"moe":{"act":1},"ignore":[1],"x":0})"),
            "linear: 3: Input should be a dictionary or an instance of QuantSpec");
  EXPECT_EQ(refused(R"({"moe":{"activation":true}})"),
            "moe.activation: true: expected str or QuantKey, got bool");
  EXPECT_EQ(refused(R"({"moe":{"weight":1.5}})"),
            "moe.weight: 1.5: expected str or QuantKey, got float");
  EXPECT_EQ(refused("[]"), "expected a JSON object, found array");
  EXPECT_EQ(refused("{moe}"),
            "not JSON: column 2: expected a key in double quotes or '}', found 'moe'");
  EXPECT_FALSE(parse_quantization_config(revision_by_name("vllm-2026-05-18"), "null"));
  EXPECT_FALSE(parse_quantization_config(revision_by_name("vllm-2026-05-18"), ""));
}

}  // namespace
}  // namespace mxfp4
