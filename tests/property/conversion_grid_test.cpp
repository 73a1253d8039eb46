// Every naming style, parallel size, padding, backend and machine: what is decided can be planned,
// what is planned is what is written, and what was written comes back.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/blob/blob_check.hpp"
#include "formats/conversion/compare.hpp"
#include "formats/conversion/repack.hpp"
#include "formats/conversion/restore.hpp"
#include "formats/decision/decide.hpp"
#include "formats/decision/plan_of_manifest.hpp"
#include "formats/decision/recipes.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/testdata.hpp"
#include "tests/unit/scratch_path.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

struct Served {
  Platform platform;
  const char* arch;
};

// Every architecture that `list` names, and some that no layout serves.
constexpr Served kMachines[] = {
    {Platform::kCuda, "sm75"},  {Platform::kCuda, "sm80"},   {Platform::kCuda, "sm89"},
    {Platform::kCuda, "sm90"},  {Platform::kCuda, "sm100"},  {Platform::kCuda, "sm103"},
    {Platform::kCuda, "sm120"}, {Platform::kRocm, "gfx942"}, {Platform::kRocm, "gfx950"},
    {Platform::kCpu, "x86_64"}, {Platform::kCpu, "aarch64"}, {Platform::kXpu, "x86_64"},
};

// One of each style, loaded inputs of three containers among them.
constexpr const char* kInputs[] = {
    "ingest/gptoss_hf",       "ingest/gptoss_original",   "ingest/dsv4",
    "ingest/quark_w4a4",      "ingest/quark_gptoss_w4a8", "ingest/ct_kimi",
    "ingest/ct_mxfp4",        "containers/raw_loaded",    "containers/hdf5/loaded_gzip.h5",
    "containers/safetensors",
};

constexpr int64_t kMostRanks = 16;

// Calls use(request, number) for every combination.
template <class Use>
void for_each_request(const RuleSet& rules, Use&& use) {
  std::vector<std::optional<Backend>> backends{std::nullopt};
  for (const Backend backend : all_backends()) backends.emplace_back(backend);
  int64_t number = 0;
  for (const auto& backend : backends) {
    for (const Served& machine : kMachines) {
      for (int64_t ranks = 1; ranks <= kMostRanks; ++ranks) {
        for (const bool experts : {false, true}) {
          for (const bool pad : {true, false}) {
            ConversionRequest request{.rules = &rules};
            request.backend = backend;
            request.deployment.platform = machine.platform;
            request.deployment.arch = machine.arch;
            request.deployment.tp_size = ranks;
            request.deployment.enable_expert_parallel = experts;
            request.pad = pad;
            use(request, number++);
          }
        }
      }
    }
  }
}

std::string name_of(const char* input, const ConversionRequest& request) {
  return fmt::format("{} {} {} tp {} ep {} pad {}", input,
                     request.backend ? backend_name(*request.backend) : "auto",
                     *request.deployment.arch, *request.deployment.tp_size,
                     *request.deployment.enable_expert_parallel, request.pad);
}

// Checksums of a layer's tensors, by the layer and the text of its recipe.
using SumsByRecipe = std::map<std::string, std::vector<std::string>>;

// A blob has the recipes that were decided, and layers of equal recipes have equal bytes.
void check_recipes(const OpenedCheckpoint& checkpoint, const Conversion& conversion,
                   const Manifest& manifest, SumsByRecipe& known) {
  const std::vector<Recipe> decided = recipes_of(conversion, checkpoint.model);
  for (size_t i = 0; i < manifest.layers.size(); ++i) {
    const ManifestLayer& layer = manifest.layers[i];
    const Recipe& recipe = layer.recipe;
    const size_t place = i * conversion.ranks.size() + static_cast<size_t>(manifest.rank.rank);
    EXPECT_EQ(recipe_difference(recipe, decided[place]), std::nullopt);
    std::vector<std::string> sums;
    for (const ManifestTensor& tensor : layer.tensors) sums.push_back(tensor.xxh3_128);
    const auto [found, added] =
        known.emplace(fmt::format("{}\n{}", layer.prefix, recipe_text(recipe)), sums);
    EXPECT_EQ(found->second, sums) << found->first;
  }
}

// Writes the conversion and takes it apart again.
void round_trip(OpenedCheckpoint& checkpoint, const Conversion& conversion, const fs::path& scratch,
                SumsByRecipe& known) {
  fs::remove_all(scratch);
  const RepackOptions options{.compression = {.zstd = false}};
  const RepackPlan plan =
      plan_repack(checkpoint, conversion.ranks, decided_manifest(conversion), options);
  std::vector<Manifest> manifests;
  {
    ConversionOutput output(
        {.output = scratch / "packed", .input = checkpoint.path, .shard = {}, .between = [] {}},
        plan.manifests, *checkpoint.source);
    Repack repack(checkpoint, plan, output, options);
    int64_t moved = 0;
    repack.run({.progress = [&](int64_t bytes) { moved += bytes; }});
    const RepackResult result = repack.commit();
    EXPECT_EQ(moved, plan.data_bytes());
    EXPECT_EQ(result.data_bytes, plan.data_bytes());
    EXPECT_EQ(result.files, plan.files());
  }
  const std::vector<fs::path> blobs = find_blobs(scratch / "packed");
  ASSERT_EQ(blobs.size(), conversion.ranks.size());
  for (const fs::path& blob : blobs) {
    const Manifest manifest = read_manifest(blob);
    check_recipes(checkpoint, conversion, manifest, known);
    EXPECT_EQ(check_layer_files(blob, manifest, 1, [](int64_t) {}), std::vector<std::string>());
    const ManifestPlan made =
        plan_of_manifest(checkpoint.source, {.path = checkpoint.path}, blob, manifest);
    EXPECT_EQ(made.findings, std::vector<std::string>());
    EXPECT_EQ(compare_with_checkpoint(made, blob, manifest, {}, {}), std::vector<std::string>());
    const fs::path back = scratch / "restored" / blob.filename();
    fs::create_directories(back);
    const RestoreResult restored = restore_blob(blob, manifest, Directory(back), {}, {});
    EXPECT_EQ(restored.files, static_cast<int64_t>(manifest.layers.size()));
  }
  fs::remove_all(scratch);
}

class ConversionGrid : public testing::TestWithParam<const char*> {};

// The step through all combinations; prime to every axis.
#ifdef MXFP4_FEW_DRAWS
constexpr int64_t kEvery = 23;
#else
constexpr int64_t kEvery = 5;
#endif

TEST_P(ConversionGrid, WhatIsDecidedIsWhatIsWritten) {
  constexpr int64_t kWriteEvery = 61;  // of those that can be converted
  const RuleSet& rules = revision_by_name("vllm-2026-05-18");
  OpenedCheckpoint checkpoint = open_checkpoint({.path = test::testdata(GetParam())}, rules);
  const fs::path scratch = test::scratch_path("conversion_grid");
  int64_t convertible = 0;
  int64_t refused = 0;
  SumsByRecipe known;
  for_each_request(rules, [&](ConversionRequest request, int64_t number) {
    if (number % kEvery != 0) return;
    SCOPED_TRACE(name_of(GetParam(), request));
    std::optional<Conversion> decided;
    try {
      decided = decide_conversion(request, &checkpoint);
    } catch (const Error& error) {  // a backend of another platform
      EXPECT_EQ(error.kind(), ErrorKind::kUsage) << error.what();
      return;
    }
    const Conversion& conversion = *decided;
    if (conversion.refusal) {
      ++refused;
      EXPECT_EQ(conversion.refusal->kind(), ErrorKind::kUnsupported);
      EXPECT_FALSE(conversion.refusal->message().empty());
      return;
    }
    // A plan, and so a dry run, never refuses what the decision allowed.
    const Plan plan = make_plan(checkpoint.model, conversion.ranks, plan_options(conversion));
    EXPECT_GT(plan.output_bytes, 0);
    EXPECT_EQ(static_cast<int64_t>(conversion.ranks.size()), *request.deployment.tp_size);
    if (convertible++ % kWriteEvery == 0) round_trip(checkpoint, conversion, scratch, known);
  });
  RecordProperty("convertible", std::to_string(convertible));
  EXPECT_GT(convertible, 0);
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(
    EveryStyle, ConversionGrid, testing::ValuesIn(kInputs),
    [](const testing::TestParamInfo<const char*>& input) {
      std::string name = input.param;
      std::ranges::replace_if(
          name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
      return name;
    });

}  // namespace
}  // namespace mxfp4
