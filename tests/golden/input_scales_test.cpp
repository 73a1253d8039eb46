// Input scales against 52 cases that the reference ran: the maximum, and when it warns. Bits are
// compared, so the last close and first not close value around each threshold count.
#include "lib/layouts/input_scales.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/aiter_layouts.hpp"
#include "tests/testdata.hpp"

namespace mxfp4 {
namespace {

using Bytes = std::vector<std::byte>;

constexpr const char* kWarning =
    "Found input_scales that are not equal for fp8 MoE layer. Using the maximum across experts for "
    "each layer.";

Bytes f32_bytes(const nlohmann::json& words) {
  Bytes bytes;
  for (const auto& word : words) {
    const auto bits = static_cast<uint32_t>(std::stoul(word.get<std::string>(), nullptr, 16));
    std::array<std::byte, 4> raw{};
    std::memcpy(raw.data(), &bits, 4);
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  }
  return bytes;
}

Output maximum_of(size_t experts) {
  LoadedSpec loaded;
  loaded.dims = {static_cast<int64_t>(experts), 256, 256};
  loaded.input_scales = true;
  return input_scale_maximum("test", loaded, Slot::kW13InputScale);
}

void expect_maximum(const Bytes& scales, const std::string& want) {
  const Output output = maximum_of(scales.size() / 4);
  ASSERT_TRUE(output.combination);
  const Combination& combine = *output.combination;
  Bytes out(4);
  const ConstBytes in = scales;
  combine.forward({&in, 1}, out);
  float value = 0;
  std::memcpy(&value, out.data(), 4);
  if (want == "nan") {
    EXPECT_TRUE(std::isnan(value));
  } else if (want == "zero") {
    EXPECT_EQ(value, 0.0F);
  } else {
    EXPECT_EQ(out, f32_bytes({want}));
  }

  Bytes back(scales.size());
  combine.inverse(out, {}, back);
  for (size_t at = 0; at < back.size(); at += 4) {
    EXPECT_EQ(Bytes(back.begin() + static_cast<ptrdiff_t>(at),
                    back.begin() + static_cast<ptrdiff_t>(at) + 4),
              out);
  }
}

TEST(InputScales, MatchTheReference) {
  std::ifstream file(test::testdata("golden/aiter_mxfp4_fp8/input_scales.json"));
  const nlohmann::json cases = nlohmann::json::parse(file);
  EXPECT_EQ(cases.size(), 52U);
  LayoutInput input;
  for (const auto& test : cases) {
    SCOPED_TRACE(test["note"].get<std::string>());
    const Bytes w13 = f32_bytes(test["w13"]);
    const Bytes w2 = f32_bytes(test["w2"]);
    expect_maximum(w13, test["out_w13"]);
    expect_maximum(w2, test["out_w2"]);
    // The reference warns once for both projections.
    const std::string first = check_granule(kAiterW4a8Fp8Layout, input, Slot::kW13InputScale, w13);
    const std::string second = check_granule(kAiterW4a8Fp8Layout, input, Slot::kW2InputScale, w2);
    EXPECT_EQ(!first.empty() || !second.empty(), test["warn"].get<bool>());
    for (const std::string& warning : {first, second}) {
      EXPECT_TRUE(warning.empty() || warning == kWarning) << warning;
    }
  }
}

TEST(InputScales, OnlyInputScalesAreTested) {
  const Bytes different = f32_bytes({"3f800000", "40000000"});
  EXPECT_EQ(check_granule(kAiterW4a8Fp8Layout, {}, Slot::kW2InputScale, different), kWarning);
  EXPECT_EQ(check_granule(kAiterW4a8Fp8Layout, {}, Slot::kW2WeightScale, different), "");
}

TEST(InputScales, AreOneGranuleAndLossy) {
  const Output output = maximum_of(5);
  EXPECT_EQ(output.experts_per_granule, 5);
  EXPECT_EQ(output.spec, (TensorSpec{DType::kF32, {}}));
  EXPECT_NE(output.lost.find("maximum"), std::string::npos);
  EXPECT_THROW((void)maximum_of(0), Error);
}

}  // namespace
}  // namespace mxfp4
