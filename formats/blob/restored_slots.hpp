// Which outputs of a packed layer give its loaded slots back, and the granules of those slots.
// unpack and a blob that is the input of a conversion share it.
//
// Usage:
//   const RestorePlan plan = plan_restore(manifest, layer);
//   check_packed_tensors(plan, layer.prefix, reader.header());
//   restore_granule(reader, plan.slots[0], granule, frames, scratch, loaded);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/manifest.hpp"
#include "lib/exec/buffer.hpp"
#include "lib/layouts/output.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {

// One slot that is restored, and the outputs that it comes from.
struct RestoredSlot {
  const Output* output = nullptr;     // in RestorePlan::outputs
  int64_t offset = 0;                 // of the output in the file's data
  std::vector<const Output*> others;  // outputs that the inverse also reads
  std::vector<int64_t> other_offsets;
};

// What a layout does not give back of one slot.
struct SlotLoss {
  Slot slot = Slot::kW13Weight;
  std::string what;    // in words
  bool whole = false;  // nothing of the slot
};

// What follows from manifest and layout. Move-only: its parts point into each other.
struct RestorePlan {
  RestorePlan() = default;
  RestorePlan(const RestorePlan&) = delete;
  RestorePlan& operator=(const RestorePlan&) = delete;
  RestorePlan(RestorePlan&&) = default;
  RestorePlan& operator=(RestorePlan&&) = default;
  ~RestorePlan() = default;

  std::vector<Output> outputs;
  std::vector<PlannedTensor> tensors;  // in file order
  std::vector<RestoredSlot> slots;     // at most one of each slot
  std::vector<SlotLoss> lost;

  // Null if the slot is not restored.
  [[nodiscard]] const RestoredSlot* slot(Slot slot) const;
};

// Which expert a tensor of the checkpoint is restored from, and how many bytes an expert has in it.
struct ExpertShare {
  // Counted over all layers: tensors of one number come from the same matrices. -1: the tensor
  // holds all experts of its layer, one behind another.
  int64_t expert = -1;
  int64_t bytes = 0;  // of one expert
};

[[nodiscard]] RestorePlan plan_restore(const Manifest& manifest, const ManifestLayer& layer);

// Throws Error::input unless the file holds what the layout writes for these sizes.
void check_packed_tensors(const RestorePlan& plan, const SafetensorsHeader& header);

// Buffers of one call at a time.
struct RestoreScratch {
  Buffer written;
  std::vector<Buffer> others;
  Buffer scratch;
};

// The frames that the last granule of a slot came from: of its own output, and of each other one.
using SlotFrames = std::vector<DecodedFrame>;

// Writes granule `granule` of the slot as it was loaded, padded, to `loaded`: experts_per_granule
// experts. `frames` were used for the granule before, of this slot or another. Throws Error::input
// for damaged data.
void restore_granule(const LayerReader& reader, const RestoredSlot& slot, int64_t granule,
                     SlotFrames& frames, RestoreScratch& scratch, MutableBytes loaded);

}  // namespace mxfp4
