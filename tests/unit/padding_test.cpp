// Padding as the plan sees it, beside what a conversion really leaves constant.
#include "lib/plan/padding.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/output.hpp"
#include "lib/layouts/run_output.hpp"
#include "lib/layouts/slot_outputs.hpp"
#include "lib/layouts/triton_layouts.hpp"

namespace mxfp4 {
namespace {

using Runs = std::vector<PaddingRun>;

Assembly assembly_of(ExpertMatrix stored, ExpertMatrix loaded) {
  return {.stored = stored,
          .loaded = loaded,
          .fill = std::byte{0},
          .tails = {},
          .rects = {{0, 0, stored.rows, stored.row_bytes, 0}}};
}

Output output_of(const Layout& layout, const LoadedSpec& loaded, const Target& target, Slot slot) {
  const std::vector<Output> outputs = make_outputs(layout, {loaded, layout_parameters(target)});
  return *std::ranges::find(outputs, slot, &Output::slot);
}

LoadedSpec loaded_of(int64_t hidden, int64_t intermediate) {
  LoadedSpec loaded;
  loaded.dims = {2, hidden, intermediate};
  loaded.bias = DType::kBF16;
  return loaded;
}

TEST(Padding, RowsAndColumnsOfAnUntouchedMatrix) {
  const LoadedSpec loaded = loaded_of(64, 4096);
  const Output output = identity_output(loaded, Slot::kW2Weight);  // 64 rows of 2,048 bytes
  EXPECT_EQ(find_padding(output, assembly_of({64, 2048}, {64, 2048})), Runs{});
  EXPECT_EQ(find_padding(output, assembly_of({63, 2048}, {64, 2048})), (Runs{{63 * 2048, 2048}}));
  // 1,023 bytes a row are too few, 1,024 are not; the last rows join what is before them.
  EXPECT_EQ(find_padding(output, assembly_of({64, 1025}, {64, 2048})), Runs{});
  const Runs rows = find_padding(output, assembly_of({62, 1024}, {64, 2048}));
  ASSERT_EQ(rows.size(), 62U);
  EXPECT_EQ(rows[0], (PaddingRun{1024, 1024}));
  EXPECT_EQ(rows[61], (PaddingRun{61 * 2048 + 1024, 1024 + 2 * 2048}));
}

// Bytes found as padding are constant whatever the weights are, and at gpt-oss's sizes little of it
// is missed.
TEST(Padding, OfLayoutsIsConstantAndHalfOfItAtLeast) {
  struct Case {
    const Layout& layout;
    Backend backend;
    int64_t padded;
    double least;  // share of the padding that is found
  };
  // A quarter of gpt-oss's sizes: 720 and what the backends round it to.
  const std::vector<Case> cases = {
      {kFlashinferTrtllmLayout, Backend::FLASHINFER_TRTLLM_MXFP4_MXFP8, 768, 0.5},
      // Their padded columns lie in runs that are too short to pay; these are the padded rows.
      {kTritonHopperLayout, Backend::TRITON, 768, 0.5},
      {kMarlinW4A16Layout, Backend::MARLIN, 768, 0.5},
  };
  std::mt19937 draw(1);
  for (const Case& c : cases) {
    const LoadedSpec loaded = loaded_of(c.padded, c.padded);
    Target target;
    target.backend = c.backend;
    for (const Slot slot : {Slot::kW13Weight, Slot::kW2Weight}) {
      const Output output = output_of(c.layout, loaded, target, slot);
      const Assembly assembly =
          assembly_of({slot == Slot::kW13Weight ? 1440 : 720, 360}, loaded.expert(slot));
      std::vector<std::byte> stored(static_cast<size_t>(assembly.stored.bytes()));
      for (std::byte& b : stored) b = static_cast<std::byte>(draw() | 0x11);  // no code is zero
      std::vector<std::byte> bytes(static_cast<size_t>(assembly.loaded.bytes()));
      assembly.forward(stored, bytes);
      SlotBytes granule;
      granule.set(slot, bytes);
      std::vector<std::byte> out(static_cast<size_t>(output.program.out_bytes()));
      std::vector<std::byte> scratch(static_cast<size_t>(scratch_bytes(output)));
      run_forward(output, granule, out, scratch);
      int64_t found = 0;
      for (const PaddingRun& run : find_padding(output, assembly)) {
        found += run.bytes;
        for (int64_t i = 0; i < run.bytes; ++i) {
          ASSERT_EQ(out[static_cast<size_t>(run.begin + i)], std::byte{0})
              << id_of(c.layout) << " " << slot_name(slot) << " " << run.begin + i;
        }
      }
      const auto padding = static_cast<double>(out.size() - stored.size());
      EXPECT_GE(static_cast<double>(found), c.least * padding)
          << id_of(c.layout) << " " << slot_name(slot);
    }
  }
}

TEST(Padding, BetweenAnyTwoPlacesOfATensor) {
  const Runs granule = {{0, 10}, {50, 40}};
  EXPECT_EQ(padding_between(granule, 100, 0, 100), granule);
  EXPECT_EQ(padding_between(granule, 100, 200, 300), granule);
  EXPECT_EQ(padding_between(granule, 100, 5, 60), (Runs{{0, 5}, {45, 10}}));
  EXPECT_EQ(padding_between(granule, 100, 150, 260), (Runs{{0, 40}, {50, 10}, {100, 10}}));
  EXPECT_EQ(padding_between(granule, 100, 10, 50), Runs{});
  EXPECT_EQ(padding_between({}, 0, 0, 50), Runs{});
}

}  // namespace
}  // namespace mxfp4
