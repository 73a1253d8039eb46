#include "lib/layouts/run_output.hpp"

#include <fmt/format.h>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

void expect_size(const Output& output, std::string_view what, size_t found, int64_t expected) {
  if (static_cast<int64_t>(found) == expected) return;
  throw Error::internal(
      fmt::format("{}: {} has {} bytes, expected {}", output.name, what, found, expected));
}

void expect_scratch(const Output& output, MutableBytes scratch) {
  if (static_cast<int64_t>(scratch.size()) >= scratch_bytes(output)) return;
  throw Error::internal(fmt::format("{}: {} bytes of scratch, expected {}", output.name,
                                    scratch.size(), scratch_bytes(output)));
}

}  // namespace

SlotBytes SlotBytes::granule(int64_t g, int64_t granules) const {
  SlotBytes part;
  for (Slot slot : kAllSlots) {
    const ConstBytes whole = (*this)[slot];
    const size_t size = whole.size() / static_cast<size_t>(granules);
    part.set(slot, whole.subspan(static_cast<size_t>(g) * size, size));
  }
  return part;
}

int64_t granule_count(const Output& output, int64_t num_experts) {
  return output.experts_per_granule == 0 ? 0 : num_experts / output.experts_per_granule;
}

std::span<const Slot> slots_read(const Output& output) {
  if (output.combination) return output.combination->slots;
  return {&output.slot, 1};
}

int64_t scratch_bytes(const Output& output) {
  const int64_t combined = output.combination ? output.combination->out_bytes : 0;
  return combined + output.program.scratch_bytes();
}

void run_forward(const Output& output, const SlotBytes& granule, MutableBytes out,
                 MutableBytes scratch) {
  expect_size(output, "the output granule", out.size(), output.program.out_bytes());
  expect_scratch(output, scratch);
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
  expect_scratch(output, scratch);
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
