// Parts of a schedule, run one by one and put at their ranges, equal the whole schedule: every
// output of every layout that can be cut, with inputs that are brought piece by piece.
#include "lib/steps/schedule_parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "lib/layouts/output.hpp"
#include "lib/steps/program.hpp"
#include "lib/steps/run_schedule.hpp"
#include "tests/golden/drawn_inputs.hpp"
#include "tests/property/target_space.hpp"

namespace mxfp4::test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(size_t size) {
  std::mt19937 draw(7);
  Bytes bytes(size);
  std::ranges::generate(bytes, [&] { return static_cast<std::byte>(draw()); });
  return bytes;
}

Bytes whole(const Program& program, const Bytes& in) {
  Bytes out(static_cast<size_t>(program.out_bytes()), std::byte{0xEE});
  Bytes scratch(static_cast<size_t>(program.scratch_bytes(Direction::kForward)));
  program.forward(in, out, scratch);
  return out;
}

// Runs a part and puts what it makes at its ranges of `out`.
void run_part(const SchedulePart& part, const Bytes& in, Bytes& out) {
  Bytes made(static_cast<size_t>(part.bytes()), std::byte{0xEE});
  Bytes scratch(static_cast<size_t>(part.schedule.scratch_bytes()));
  // Each call moves what is brought, as a window of a file does.
  Bytes brought;
  const BringInput bring = [&](int64_t begin, int64_t end) {
    brought.assign(in.begin() + begin, in.begin() + end);
    return brought.data();
  };
  const ConstBytes nowhere(static_cast<const std::byte*>(nullptr), in.size());
  run_schedule(part.schedule, nowhere, made, scratch, &bring);
  for (int64_t row = 0; row < part.out.rows; ++row) {
    std::copy_n(made.begin() + row * part.out.width, part.out.width,
                out.begin() + part.out.begin + row * part.out.pitch);
  }
}

TEST(ScheduleParts, TogetherMakeWhatTheWholeMakes) {
  size_t cut = 0;
  for (const auto& [layout, input] : inputs_of({1, 512, 1024})) {
    for (const Output& output : make_outputs(*layout, input)) {
      const Program& program = output.program;
      if (program.is_identity() || program.in_bytes() == 0) continue;
      for (const int64_t most : {10'000, 50'000}) {
        const auto parts =
            cut_into_parts(program.steps(), program.schedule(Direction::kForward), most);
        if (parts.empty()) continue;
        ++cut;
        const Bytes in = random_bytes(static_cast<size_t>(program.in_bytes()));
        const Bytes wanted = whole(program, in);
        Bytes out(wanted.size(), std::byte{0xEE});
        int64_t bytes = 0;
        for (const SchedulePart& part : parts) {
          ASSERT_EQ(part.out.bytes(), part.bytes());
          ASSERT_LE(part.bytes(), most);
          run_part(part, in, out);
          bytes += part.bytes();
        }
        EXPECT_EQ(bytes, program.out_bytes()) << id_of(*layout) << ' ' << output.name;
        EXPECT_TRUE(out == wanted) << id_of(*layout) << ' ' << output.name << ", parts of " << most;
      }
    }
  }
  EXPECT_GT(cut, 50U);
}

// The weights that the loader would else make an expert at a time.
TEST(ScheduleParts, OfGptOssWeightsFitACoresCache) {
  const std::set<std::string_view> wanted = {
      "flashinfer/trtllm", "flashinfer/cutlass-mxfp8", "flashinfer/cutlass-sm90-folded",
      "triton/hopper-s4",  "triton/blackwell",         "marlin/w4a16"};
  size_t found = 0;
  for (const auto& [layout, input] : inputs_of({1, 2880, 2880})) {
    if (!wanted.contains(id_of(*layout))) continue;
    ++found;
    const auto outputs = make_outputs(*layout, input);
    const auto w13 = std::ranges::find(outputs, "w13_weight", &Output::name);
    ASSERT_TRUE(w13 != outputs.end()) << id_of(*layout);
    const auto& parts = w13->program.parts();
    EXPECT_GE(parts.size(), 8U) << id_of(*layout);
    for (const SchedulePart& part : parts) {
      EXPECT_LE(part.bytes(), Program::kPartBytes) << id_of(*layout);
    }
  }
  EXPECT_EQ(found, wanted.size());
}

}  // namespace
}  // namespace mxfp4::test
