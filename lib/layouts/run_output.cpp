#include "lib/layouts/run_output.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

void expect_size(const Output& output, std::string_view what, size_t found, int64_t expected) {
  if (static_cast<int64_t>(found) == expected) return;
  throw Error::internal(
      fmt::format("{}: {} has {} bytes, expected {}", output.name, what, found, expected));
}

void expect_scratch(const Output& output, MutableBytes scratch, Direction direction) {
  const int64_t expected = scratch_bytes(output, direction);
  if (static_cast<int64_t>(scratch.size()) >= expected) return;
  throw Error::internal(
      fmt::format("{}: {} bytes of scratch, expected {}", output.name, scratch.size(), expected));
}

int64_t combined_bytes(const Output& output) {
  return output.combination ? output.combination->out_bytes : 0;
}

// A row has at most one entry in each table. The operations on strips take few bytes beside them.
int64_t most_table_bytes(const Program& program) {
  constexpr int64_t kRowBytes = sizeof(RowMoves) + sizeof(int64_t);
  constexpr int64_t kOperationBytes = int64_t{1} << 20;
  int64_t rows = 0;
  for (const Step& step : program.steps()) {
    if (const auto* gather = std::get_if<GatherRows>(&step)) rows += std::ssize(gather->source);
    if (const auto* pad = std::get_if<PadMatrix>(&step)) rows += pad->out_rows;
  }
  return rows * kRowBytes + kOperationBytes;
}

// The scratch is at most one strip and two results of steps, and one buffer for two steps.
int64_t most_scratch_bytes(const Program& program) {
  int64_t largest = program.in_bytes();
  for (const Step& step : program.steps()) largest = std::max(largest, step_out_bytes(step));
  return std::clamp<int64_t>(std::ssize(program.steps()) - 1, 0, 3) * largest;
}

}  // namespace

std::span<const Slot> slots_read(const Output& output) {
  if (output.combination) return output.combination->slots;
  return {&output.slot, 1};
}

int64_t scratch_bytes(const Output& output, Direction direction) {
  return combined_bytes(output) + output.program.scratch_bytes(direction);
}

int64_t scratch_bytes(const Output& output) {
  return combined_bytes(output) + output.program.scratch_bytes();
}

ScheduleBytes schedule_bytes(std::span<const Output* const> outputs, Direction direction,
                             int64_t enough) {
  ScheduleBytes bytes;
  for (const Output* output : outputs) {
    bytes.tables += table_bytes(output->program.schedule(direction));
    bytes.scratch = std::max(bytes.scratch, scratch_bytes(*output, direction));
    if (bytes.sum() > enough) break;
  }
  return bytes;
}

ScheduleBytes most_schedule_bytes(std::span<const Output* const> outputs) {
  ScheduleBytes bytes;
  for (const Output* output : outputs) {
    bytes.tables += most_table_bytes(output->program);
    bytes.scratch =
        std::max(bytes.scratch, combined_bytes(*output) + most_scratch_bytes(output->program));
  }
  return bytes;
}

void run_forward(const Output& output, const SlotBytes& granule, MutableBytes out,
                 MutableBytes scratch) {
  expect_size(output, "the output granule", out.size(), output.program.out_bytes());
  expect_scratch(output, scratch, Direction::kForward);
  ConstBytes in = granule[output.slot];
  if (output.combination) {
    const Combination& combination = *output.combination;
    std::array<ConstBytes, kAllSlots.size()> inputs;
    size_t count = 0;
    for (Slot slot : combination.slots) inputs[count++] = granule[slot];
    const MutableBytes combined = scratch.first(static_cast<size_t>(combination.out_bytes));
    combination.forward({inputs.data(), count}, combined);
    in = combined;
    scratch = scratch.subspan(combined.size());
  }
  expect_size(output, "the input granule", in.size(), output.program.in_bytes());
  output.program.forward(in, out, scratch);
}

void run_inverse(const Output& output, ConstBytes written, std::span<const ConstBytes> others,
                 MutableBytes out, MutableBytes scratch) {
  expect_size(output, "the written granule", written.size(), output.program.out_bytes());
  expect_scratch(output, scratch, Direction::kInverse);
  if (!output.combination) {
    expect_size(output, "the loaded granule", out.size(), output.program.in_bytes());
    output.program.inverse(written, out, scratch);
    return;
  }
  const Combination& combination = *output.combination;
  if (others.size() != combination.inverse_from.size()) {
    throw Error::internal(fmt::format("{}: {} other outputs, expected {}", output.name,
                                      others.size(), combination.inverse_from.size()));
  }
  const MutableBytes own = scratch.first(static_cast<size_t>(combination.out_bytes));
  output.program.inverse(written, own, scratch.subspan(own.size()));
  combination.inverse(own, others, out);
}

}  // namespace mxfp4
