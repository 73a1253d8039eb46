// Runs one output of a layout on one granule of experts, in both directions: first the
// combination (if there is one), then the program; backwards the program, then the combination. The
// pipeline and the tests share it. Nothing here allocates.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "lib/layouts/output.hpp"
#include "lib/steps/schedule.hpp"

namespace mxfp4 {

// Bytes by slot: one granule's, or a whole tensor's. Slots that an output does not read may be
// empty.
class SlotBytes {
 public:
  [[nodiscard]] ConstBytes operator[](Slot slot) const { return bytes_[index(slot)]; }
  void set(Slot slot, ConstBytes bytes) { bytes_[index(slot)] = bytes; }

 private:
  static size_t index(Slot slot) { return static_cast<size_t>(slot); }
  std::array<ConstBytes, kAllSlots.size()> bytes_{};
};

// The slots that run_forward reads, in order; the first is the output's own.
[[nodiscard]] std::span<const Slot> slots_read(const Output& output);

// Bytes of scratch that run_forward or run_inverse needs; without a direction, the larger number.
[[nodiscard]] int64_t scratch_bytes(const Output& output, Direction direction);
[[nodiscard]] int64_t scratch_bytes(const Output& output);

// Bytes of memory that the schedules of some outputs take.
struct ScheduleBytes {
  int64_t tables = 0;   // of all
  int64_t scratch = 0;  // of the one that needs most

  [[nodiscard]] int64_t sum() const { return tables + scratch; }
};

// Makes the schedules, until they take more than `enough` bytes together.
[[nodiscard]] ScheduleBytes schedule_bytes(std::span<const Output* const> outputs,
                                           Direction direction,
                                           int64_t enough = std::numeric_limits<int64_t>::max());
// No member of schedule_bytes() is larger; found without making a schedule.
[[nodiscard]] ScheduleBytes most_schedule_bytes(std::span<const Output* const> outputs);

// Writes one granule of the output: exactly program.out_bytes() bytes, each of which is set.
// `granule` holds one granule of each slot of slots_read(). `scratch` has at least
// scratch_bytes(output, Direction::kForward) bytes; no buffer overlaps another. Throws
// Error::internal when a size is not the planned one.
void run_forward(const Output& output, const SlotBytes& granule, MutableBytes out,
                 MutableBytes scratch);

// Writes one granule of the slot `output.slot` as it was loaded, from one granule of the output as
// written. `others` are the granules of the outputs that combination->inverse_from names, in
// that order. Requires output.restores_slot. Throws Error::internal as run_forward does.
void run_inverse(const Output& output, ConstBytes written, std::span<const ConstBytes> others,
                 MutableBytes out, MutableBytes scratch);

}  // namespace mxfp4
