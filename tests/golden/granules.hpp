// The granules of an output in a whole layer, for what runs a layout over one in memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/layouts/run_output.hpp"

namespace mxfp4::test {

// Of a layer of `num_experts` experts; 0 for an output that no granule has.
[[nodiscard]] inline int64_t granule_count(const Output& output, int64_t num_experts) {
  return output.experts_per_granule == 0 ? 0 : num_experts / output.experts_per_granule;
}

// The part of granule `g` when every slot holds `granules` granules.
[[nodiscard]] inline SlotBytes granule_of(const SlotBytes& layer, int64_t g, int64_t granules) {
  SlotBytes part;
  for (const Slot slot : kAllSlots) {
    const size_t size = layer[slot].size() / static_cast<size_t>(granules);
    part.set(slot, layer[slot].subspan(static_cast<size_t>(g) * size, size));
  }
  return part;
}

}  // namespace mxfp4::test
