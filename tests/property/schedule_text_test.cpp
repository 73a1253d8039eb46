// How every layout runs, as text, and the memory of its schedules. testdata/schedules holds one
// file a layout, with every output in both directions at gpt-oss's sizes. A change of a schedule
// shows there, and is measured with scripts/bench before the files are written
// again (testdata/schedules/README.md).
#include "lib/steps/schedule_text.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "lib/layouts/run_output.hpp"
#include "lib/revisions/revisions.hpp"
#include "lib/steps/lower.hpp"
#include "tests/property/target_space.hpp"
#include "tests/testdata.hpp"

namespace mxfp4::test {
namespace {

namespace fs = std::filesystem;

constexpr LayerDims kSizes = {1, 2880, 2880};
constexpr LayerDims kWholeTiles = {1, 2944, 2944};
const fs::path kFolder = test::testdata("schedules");

std::string text_of(const Layout& layout, const LayoutInput& input) {
  const LayerDims& dims = input.loaded.dims;
  std::string text =
      fmt::format("{}, H {}, I {}\n", id_of(layout), dims.hidden_size, dims.intermediate_size);
  for (const Output& output : make_outputs(layout, input)) {
    for (const Direction direction : {Direction::kForward, Direction::kInverse}) {
      const char* back = direction == Direction::kInverse ? " back" : "";
      text += fmt::format("\n{}{}: {}", output.name, back,
                          schedule_text(output.program.schedule(direction)));
    }
  }
  return text;
}

// By file name.
std::map<std::string, std::string> texts() {
  std::map<std::string, std::string> texts;
  // What rounds nothing takes no sizes of gpt-oss's kind.
  std::map<const Layout*, LayoutInput> inputs = inputs_of(kSizes);
  inputs.merge(inputs_of(kWholeTiles));
  for (const auto& [layout, input] : inputs) {
    std::string name(id_of(*layout));
    std::ranges::replace(name, '/', '-');
    texts[name + ".txt"] = text_of(*layout, input);
  }
  return texts;
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ScheduleText, OfEveryLayoutIsTheSnapshot) {
  const bool update = std::getenv("MXFP4_UPDATE_SNAPSHOTS") != nullptr;
  std::set<std::string> files;
  for (const auto& [name, text] : texts()) {
    files.insert(name);
    if (update) {
      fs::create_directories(kFolder);
      std::ofstream(kFolder / name) << text;
    }
    EXPECT_EQ(read_text(kFolder / name), text) << name;
  }
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(name == "README.md" || files.contains(name)) << name << ": no layout's";
  }
  EXPECT_GE(files.size(), all_layouts().size());
}

TEST(ScheduleMemory, IsWithinTheBound) {
  const LayerDims few_columns = {1, 32, 1 << 15};
  const LayerDims few_rows = {1, 1 << 15, 32};
  for (const LayerDims& sizes : {kSizes, few_columns, few_rows}) {
    const auto inputs = inputs_of(sizes);
    EXPECT_GE(inputs.size(), all_layouts().size() / 2);  // some refuse odd sizes
    for (const auto& [layout, input] : inputs) {
      for (const Output& output : make_outputs(*layout, input)) {
        const Output* const one = &output;
        for (const Direction direction : {Direction::kForward, Direction::kInverse}) {
          const ScheduleBytes bytes = schedule_bytes({&one, 1}, direction);
          const ScheduleBytes most = most_schedule_bytes({&one, 1});
          EXPECT_TRUE(bytes.tables <= most.tables && bytes.scratch <= most.scratch)
              << id_of(*layout) << ' ' << output.name << ", I " << sizes.intermediate_size << ": "
              << bytes.tables << " of " << most.tables << ", " << bytes.scratch << " of "
              << most.scratch;
        }
      }
    }
  }
}

TEST(ScheduleText, OffsetsAreLoops) {
  const auto text = [](const std::vector<int64_t>& offsets) { return offsets_text(offsets); };
  EXPECT_EQ(text({}), "nothing");
  EXPECT_EQ(text({7}), "7");
  EXPECT_EQ(text({0, 64, 128}), "0 [3 x 64]");
  EXPECT_EQ(text({5, 9, 105, 109, 205, 209}), "5 [3 x 100] [2 x 4]");
  EXPECT_EQ(text({0, 0, 64, 64}), "0 [2 x 64] [2 x 0]");
  EXPECT_EQ(text({0, 1, 3}), "{0, 1, 3}");
  const std::vector<int64_t> many = {0, 1, 3, 4, 7, 8, 9, 12, 20};
  std::vector<int64_t> others = many;
  others.back() = 21;
  EXPECT_TRUE(text(many).starts_with("0 ... (9, checksum ")) << text(many);
  EXPECT_NE(text(many), text(others));
}

TEST(ScheduleText, SaysWhatRuns) {
  EXPECT_EQ(schedule_text(lower({}, 100, Direction::kForward)),
            "100 -> 100 bytes\n"
            "  1 rows of 100 bytes: input 0 -> output 0\n");
  EXPECT_EQ(schedule_text(lower({}, 0, Direction::kForward)), "0 -> 0 bytes\n");
  const std::vector<Step> padded = {
      GatherRows{.row_bytes = 8, .source = {2, 0, 1, 3}},
      PadMatrix{
          .rows = 4, .row_bytes = 8, .out_rows = 5, .out_row_bytes = 10, .fill = std::byte{127}}};
  EXPECT_EQ(schedule_text(lower(padded, 32, Direction::kForward)),
            "32 -> 50 bytes\n"
            "  4 rows of 8 bytes, then 2 of 127: input 0 [4 x 8] -> output {10, 20, 0, 30}\n"
            "  1 rows of 0 bytes, then 10 of 127: input 0 -> output 40\n");
  EXPECT_EQ(schedule_text(lower(padded, 32, Direction::kInverse, {.stream_from = 0})),
            "50 -> 32 bytes\n"
            "  4 rows of 8 bytes: input 0 [4 x 10] -> output {16, 0, 8, 24}, past the caches\n");
}

}  // namespace
}  // namespace mxfp4::test
