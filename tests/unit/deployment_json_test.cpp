// What is not JSON, and where; a target's file.
#include "formats/config/deployment_json.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "formats/json/python_json.hpp"
#include "lib/core/error.hpp"

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

TEST(DeploymentJson, RefusesTextThatIsNoJson) {
  EXPECT_EQ(parse_refusal([] { return parse_python_json("{"); }),
            "not JSON: line 1, column 2: syntax error while parsing object key - unexpected end of "
            "input; "
            "expected string literal");
  EXPECT_EQ(parse_refusal([] { return parse_python_json("[1e999]"); }),
            "not JSON: number overflow parsing '1e999'");
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
            "gpu: unknown key, expected vllm, sglang, platform, arch, libs, cuda_compiler, env");
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

}  // namespace
}  // namespace mxfp4
