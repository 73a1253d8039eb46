// Runs every layout on larger inputs, drawn from a seed, and compares SHA-256 digests of what the
// reference wrote: one test a row of testdata/golden/<backend>/digests.json. Adding a case is
// adding a row. A row of digests-newer.json runs with the revision of 2026-08-17. Rows of
// testdata/engines/layouts.json are what releases' own converters made, and name the releases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/golden/digest_of.hpp"
#include "tests/golden/drawn_inputs.hpp"
#include "tests/testdata.hpp"

namespace mxfp4::test {
namespace {

struct DigestCase {
  std::string name;
  nlohmann::json row;
  bool newest = false;
};

void PrintTo(const DigestCase& digest, std::ostream* out) { *out << digest.name; }

std::vector<DigestCase> digest_cases() {
  std::vector<DigestCase> cases;
  for (const auto& folder : golden_folders()) {
    for (const bool newest : {false, true}) {
      const auto path = folder / (newest ? "digests-newer.json" : "digests.json");
      if (!std::filesystem::exists(path)) continue;
      std::ifstream file(path);
      for (nlohmann::json& row : nlohmann::json::parse(file)) {
        std::string backend = folder.filename().string();
        for (char& c : backend) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        row["backend"] = backend;
        cases.push_back({case_name(path) + "_" + std::to_string(cases.size()), row, newest});
      }
    }
  }
  return cases;
}

Target target_of(const nlohmann::json& row) {
  Fields fields;
  for (const auto& [name, value] : row.items()) {
    if (value.is_string()) fields[name] = value.get<std::string>();
    if (value.is_number()) fields[name] = value.dump();
  }
  Target target = target_from_fields(fields);
  // The knob is given even where it is "none": some releases refuse the layout without it.
  constexpr const char* kHumming = "humming_input_dtype";
  if (fields.contains(kHumming)) target.knobs[kHumming] = fields[kHumming];
  if (row.contains("env")) target.env = row["env"].get<std::map<std::string, std::string>>();
  return target;
}

LoadedLayer layer_of(const nlohmann::json& row, Family family) {
  const auto dims_of = [&](const nlohmann::json& sizes) {
    return LayerDims{row.at("E").get<int64_t>(), sizes.at("H").get<int64_t>(),
                     sizes.at("I").get<int64_t>()};
  };
  LoadedSpec spec;
  spec.dims = dims_of(row.contains("pad_from") ? row["pad_from"] : row);
  if (row.value("bias", true)) spec.bias = DType::kBF16;
  spec.input_scales = row.contains("input_scale_mode");
  const LoadedLayer layer =
      drawn_layer(spec, {row.at("seed").get<uint64_t>(), row.value("scale_mode", "typical"),
                         row.value("input_scale_mode", "spread")});
  return row.contains("pad_from") ? padded_layer(layer, family, dims_of(row)) : layer;
}

class LayoutDigest : public testing::TestWithParam<DigestCase> {};

TEST_P(LayoutDigest, Matches) {
  const nlohmann::json& row = GetParam().row;
  const Target target = target_of(row);
  const LoadedLayer layer = layer_of(row, target.family);
  const LayoutInput input{layer.spec, layout_parameters(target)};
  const RuleSet& rules =
      GetParam().newest ? revision_by_name("vllm-2026-08-17") : revision_by_name("vllm-2026-05-18");
  const LayoutRow* found = find_layout_row(rules, target);
  ASSERT_NE(found, nullptr) << "no row for this target";
  ASSERT_NE(found->layout, nullptr) << found->refusal;
  const Tensors written = run_layout(*found->layout, input, layer, std::byte{0xA5});

  const nlohmann::json& expected = row.at("out");
  EXPECT_EQ(written.size(), expected.size());
  for (const auto& [name, want] : expected.items()) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(written.contains(name));
    const Tensor& got = written.at(name);
    EXPECT_EQ(dtype_name(got.spec.dtype), want.at("dtype").get<std::string>());
    EXPECT_EQ(got.spec.shape, Shape(want.at("shape").get<std::vector<int64_t>>()))
        << got.spec.shape.to_string();
    // The reference's bytes are not here: README.md of testdata/golden says how to make them again.
    EXPECT_EQ(digest_of(got.bytes), want.at("sha256").get<std::string>())
        << got.spec.shape.to_string() << " drawn for " << row.dump();
  }
  expect_restored(make_outputs(*found->layout, input), layer, written);
}

// Whether the layout's preconditions hold. A release's converter may take sizes that its rounding
// never gives it, and pad them with memory that it does not initialise.
bool takes(const Layout& layout, const LayoutInput& input) {
  try {
    return !make_outputs(layout, input).empty();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnsupported) throw;
    return false;
  }
}

// Tensors that a release's converter made, against those of one layout of the program.
void expect_executed(const nlohmann::json& row, const Target& target, const Layout& layout) {
  LoadedSpec spec;
  spec.dims = {row.at("E").get<int64_t>(), row.at("H").get<int64_t>(), row.at("I").get<int64_t>()};
  if (row.at("bias").get<bool>()) spec.bias = DType::kBF16;
  spec.input_scales =
      target.backend == Backend::EMULATION || target.backend == Backend::AITER_MXFP4_FP8;
  if (!takes(layout, {spec, layout_parameters(target)})) return;
  const LoadedLayer layer = drawn_layer(
      spec, {row.at("seed").get<uint64_t>(), row.value("scale_mode", "typical"), "uniform"});
  const Tensors written =
      run_layout(layout, {spec, layout_parameters(target)}, layer, std::byte{0xA5});
  for (const auto& [name, want] : row.at("out").items()) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(written.contains(name));
    const Tensor& got = written.at(name);
    EXPECT_EQ(dtype_name(got.spec.dtype), want.at(0).get<std::string>());
    EXPECT_EQ(got.spec.shape, Shape(want.at(1).get<std::vector<int64_t>>()));
    EXPECT_EQ(digest_of(got.bytes), want.at(2).get<std::string>());
  }
}

// Rows that the rules refuse are not compared; the test expects that other rows are left.
TEST(ReleaseLayouts, GiveTheBytesThatReleasesMade) {
  std::ifstream file(test::testdata("engines/layouts.json"));
  std::set<std::string> compared;
  const nlohmann::json stored = nlohmann::json::parse(file);
  for (const nlohmann::json& row : stored.at("executed")) {
    const Target target = target_of(row);
    std::set<const Layout*> layouts;
    for (const auto& release : row.at("releases")) {
      const LayoutRow* found =
          find_layout_row(revision_by_name(release.get<std::string>()), target);
      if (found == nullptr || found->layout == nullptr) continue;
      layouts.insert(found->layout);
      compared.insert(release.get<std::string>());
    }
    for (const Layout* layout : layouts) {
      SCOPED_TRACE(row.at("releases").dump() + " " + row.at("backend").get<std::string>() + " " +
                   std::string(id_of(*layout)) + ", seed " + row.at("seed").dump());
      expect_executed(row, target, *layout);
    }
  }
  EXPECT_GE(compared.size(), 10U);
}

INSTANTIATE_TEST_SUITE_P(Rows, LayoutDigest, testing::ValuesIn(digest_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(DigestOf, KnowsThePublishedVectors) {
  EXPECT_EQ(digest_of({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const std::string abc = "abc";
  EXPECT_EQ(digest_of(std::as_bytes(std::span(abc))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace mxfp4::test
