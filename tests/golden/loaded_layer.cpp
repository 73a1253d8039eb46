#include "tests/golden/loaded_layer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "tests/golden/granules.hpp"

namespace mxfp4::test {
namespace {

const Output& output_by_name(const std::vector<Output>& outputs, const std::string& name) {
  const auto found = std::ranges::find(outputs, name, &Output::name);
  if (found == outputs.end()) throw std::runtime_error("no output " + name);
  return *found;
}

// Granule g of a tensor as written.
ConstBytes written_granule(const Tensors& written, const Output& output, int64_t g) {
  const auto size = static_cast<size_t>(output.program.out_bytes());
  return ConstBytes(written.at(output.name).bytes).subspan(static_cast<size_t>(g) * size, size);
}

Platform default_platform(std::string_view backend, std::string_view arch) {
  if (backend == "XPU") return Platform::kXpu;
  if (backend == "CPU") return Platform::kCpu;
  if (backend.starts_with("AITER") || arch.starts_with("gfx")) return Platform::kRocm;
  return Platform::kCuda;
}

}  // namespace

SlotBytes LoadedLayer::bytes() const {
  SlotBytes result;
  for (const auto& [slot, tensor] : slots) result.set(slot, tensor.bytes);
  return result;
}

LoadedLayer layer_from_tensors(const Tensors& tensors) {
  LoadedLayer layer;
  const Shape& w13 = tensors.at("w13_weight").spec.shape;
  layer.spec.dims = {w13[0], w13[2] * kCodesPerByte, w13[1] / 2};
  for (const auto& [name, tensor] : tensors) layer.slots[slot_from_name(name).value()] = tensor;
  if (layer.slots.contains(Slot::kW13Bias)) {
    layer.spec.bias = layer.slots[Slot::kW13Bias].spec.dtype;
  }
  layer.spec.input_scales = layer.slots.contains(Slot::kW13InputScale);
  for (const auto& [slot, tensor] : layer.slots) {
    if (layer.spec.tensor(slot) != tensor.spec) throw std::runtime_error("sizes do not agree");
  }
  return layer;
}

LoadedLayer expert_of(const LoadedLayer& layer, int64_t expert) {
  LoadedLayer one;
  one.spec = layer.spec;
  one.spec.dims.num_experts = 1;
  for (const auto& [slot, tensor] : layer.slots) {
    const auto size = static_cast<ptrdiff_t>(one.spec.expert(slot).bytes());
    const auto begin = tensor.bytes.begin() + expert * size;
    one.slots[slot] = {one.spec.tensor(slot), {begin, begin + size}};
  }
  return one;
}

Target target_from_fields(const Fields& fields) {
  const auto get = [&](const std::string& name) {
    const auto found = fields.find(name);
    return found == fields.end() ? std::string() : found->second;
  };
  Target target;
  target.backend = backend_from_name(get("backend")).value();
  target.family = family_from_name(get("family")).value();
  const std::string arch = get("arch");
  target.platform = fields.contains("platform") ? platform_from_name(get("platform")).value()
                                                : default_platform(get("backend"), arch);
  if (arch != "any" && arch != "xpu") target.arch = arch;
  for (const char* knob : {"params_dtype", "marlin_input_dtype", "humming_input_dtype",
                           "cuda_compiler", "aiter_weight"}) {
    const std::string value = get(knob);
    if (!value.empty()) target.knobs[knob] = value;
  }
  if (fields.contains("tp_size")) target.world_size = std::stoll(get("tp_size"));
  target.activation = get("activation");
  return target;
}

Tensors run_layout(const Layout& layout, const LayoutInput& input, const LoadedLayer& layer,
                   std::byte poison) {
  Tensors written;
  const SlotBytes whole = layer.bytes();
  for (const Output& output : make_outputs(layout, input)) {
    const int64_t granules = granule_count(output, layer.spec.dims.num_experts);
    const auto size = static_cast<size_t>(output.program.out_bytes());
    Tensor tensor{output.spec, {}};
    tensor.bytes.assign(static_cast<size_t>(granules) * size, poison);
    std::vector<std::byte> scratch(static_cast<size_t>(scratch_bytes(output)), poison);
    for (int64_t g = 0; g < granules; ++g) {
      const SlotBytes granule = granule_of(whole, g, granules);
      if (checks_data(layout)) {
        for (Slot slot : slots_read(output))
          (void)check_granule(layout, input, slot, granule[slot]);
      }
      run_forward(output, granule,
                  MutableBytes(tensor.bytes).subspan(static_cast<size_t>(g) * size, size), scratch);
    }
    EXPECT_EQ(static_cast<int64_t>(tensor.bytes.size()), output.spec.bytes()) << output.name;
    EXPECT_FALSE(written.contains(output.name)) << output.name;
    written[output.name] = std::move(tensor);
  }
  return written;
}

std::map<Slot, Tensor> undo_layout(const std::vector<Output>& outputs, const LoadedSpec& loaded,
                                   const Tensors& written) {
  std::map<Slot, Tensor> slots;
  for (const Output& output : outputs) {
    if (!output.restores_slot) continue;
    const int64_t granules = granule_count(output, loaded.dims.num_experts);
    Tensor tensor{loaded.tensor(output.slot), {}};
    tensor.bytes.assign(static_cast<size_t>(tensor.spec.bytes()), std::byte{0xEE});
    std::vector<std::byte> scratch(static_cast<size_t>(scratch_bytes(output)), std::byte{0xEE});
    for (int64_t g = 0; g < granules; ++g) {
      std::vector<ConstBytes> others;
      if (output.combination) {
        for (const std::string& name : output.combination->inverse_from) {
          others.push_back(written_granule(written, output_by_name(outputs, name), g));
        }
      }
      const size_t size = tensor.bytes.size() / static_cast<size_t>(granules);
      run_inverse(output, written_granule(written, output, g), others,
                  MutableBytes(tensor.bytes).subspan(static_cast<size_t>(g) * size, size), scratch);
    }
    EXPECT_FALSE(slots.contains(output.slot)) << slot_name(output.slot) << " is restored twice";
    slots[output.slot] = std::move(tensor);
  }
  return slots;
}

void expect_restored(const std::vector<Output>& outputs, const LoadedLayer& layer,
                     const Tensors& written) {
  const auto restored = undo_layout(outputs, layer.spec, written);
  for (const auto& [slot, tensor] : layer.slots) {
    const auto is_source = [slot = slot](const Output& o) {
      return o.slot == slot && (o.restores_slot || !o.lost.empty());
    };
    const auto source = std::ranges::find_if(outputs, is_source);
    if (source == outputs.end()) {
      // Input scales stay behind where the backend has no use for them.
      EXPECT_TRUE(slot == Slot::kW13InputScale || slot == Slot::kW2InputScale)
          << "nothing restores " << slot_name(slot);
      continue;
    }
    if (!source->lost.empty()) continue;
    EXPECT_EQ(first_difference(restored.at(slot).bytes, tensor.bytes), -1)
        << slot_name(slot) << ", restored from " << source->name;
  }
}

int64_t first_difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  if (a == b) return -1;  // at memcmp's speed
  const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return at - a.begin();
}

}  // namespace mxfp4::test
