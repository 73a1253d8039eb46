#include "formats/blob/restored_slots.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/blob/layout_facts.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/run_output.hpp"

namespace mxfp4 {
namespace {

int64_t offset_of(const RestorePlan& plan, std::string_view output) {
  for (const PlannedTensor& tensor : plan.tensors) {
    if (plan.outputs[tensor.output].name == output) return tensor.offset;
  }
  throw Error::internal(fmt::format("no output {}", output));
}

RestoredSlot restored_from(const RestorePlan& plan, const Output& output) {
  RestoredSlot restored;
  restored.output = &output;
  restored.offset = offset_of(plan, output.name);
  if (!output.combination) return restored;
  for (const std::string& name : output.combination->inverse_from) {
    restored.others.push_back(&*std::ranges::find(plan.outputs, name, &Output::name));
    restored.other_offsets.push_back(offset_of(plan, name));
  }
  return restored;
}

}  // namespace

const RestoredSlot* RestorePlan::slot(Slot slot) const {
  const auto found = std::ranges::find_if(
      slots, [&](const RestoredSlot& each) { return each.output->slot == slot; });
  return found == slots.end() ? nullptr : &*found;
}

RestorePlan plan_restore(const Manifest& manifest, const ManifestLayer& layer) {
  RestorePlan plan;
  plan.outputs = outputs_of(manifest, layer);
  plan.tensors = arrange_tensors(layer.prefix, plan.outputs, layer.recipe.num_experts());
  for (const Slot slot : kAllSlots) {
    if (!layer.recipe.loaded().has(slot)) continue;
    const auto output = std::ranges::find_if(
        plan.outputs, [&](const Output& each) { return each.slot == slot && each.restores_slot; });
    if (output == plan.outputs.end()) {
      plan.lost.push_back({slot, fmt::format("{} is not in the blob", slot_name(slot)), true});
      continue;
    }
    plan.slots.push_back(restored_from(plan, *output));
    if (!output->lost.empty()) {
      plan.lost.push_back({slot, fmt::format("{} is not exact: {}", output->name, output->lost)});
    }
  }
  return plan;
}

void check_packed_tensors(const RestorePlan& plan, const SafetensorsHeader& header) {
  bool equal = plan.tensors.size() == header.tensors.size();
  for (size_t i = 0; equal && i < plan.tensors.size(); ++i) {
    equal = plan.tensors[i].name == header.tensors[i].name &&
            plan.tensors[i].spec == header.tensors[i].spec &&
            plan.tensors[i].offset == header.tensors[i].begin;
  }
  if (!equal) throw Error::input("the file's tensors do not fit its layout and sizes");
}

void restore_granule(const LayerReader& reader, const RestoredSlot& slot, int64_t granule,
                     SlotFrames& frames, RestoreScratch& scratch, MutableBytes loaded) {
  const int64_t bytes = slot.output->program.out_bytes();
  const MutableBytes written = scratch.written.get(bytes);
  frames.resize(std::max(frames.size(), 1 + slot.others.size()));
  reader.read(slot.offset + granule * bytes, written, frames.front());
  scratch.others.resize(std::max(scratch.others.size(), slot.others.size()));
  std::vector<ConstBytes> others;
  for (size_t i = 0; i < slot.others.size(); ++i) {
    const int64_t size = slot.others[i]->program.out_bytes();
    const MutableBytes other = scratch.others[i].get(size);
    reader.read(slot.other_offsets[i] + granule * size, other, frames[1 + i]);
    others.push_back(other);
  }
  run_inverse(*slot.output, written, others, loaded,
              scratch.scratch.get(scratch_bytes(*slot.output, Direction::kInverse)));
}

}  // namespace mxfp4
