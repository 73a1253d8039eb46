#include "lib/layouts/slot_outputs.hpp"

#include <fmt/format.h>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/steps/recodings.hpp"

namespace mxfp4 {

void require_multiple(std::string_view layout_id, std::string_view what, int64_t value, int64_t m) {
  if (value % m != 0) {
    throw Error::unsupported(
        fmt::format("layout {}: {} must be a multiple of {}, found {}", layout_id, what, m, value));
  }
}

Output slot_output(const LoadedSpec& loaded, Slot slot, TensorSpec spec, Program program) {
  const int64_t experts = loaded.dims.num_experts;
  if (experts > 0 && (program.in_bytes() != loaded.expert(slot).bytes() ||
                      program.out_bytes() * experts != spec.bytes())) {
    throw Error::internal(fmt::format("the program of {} has {} bytes in and {} out an expert",
                                      slot_name(slot), program.in_bytes(), program.out_bytes()));
  }
  Output output;
  output.name = slot_name(slot);
  output.slot = slot;
  output.spec = spec;
  output.program = std::move(program);
  return output;
}

Output identity_output(const LoadedSpec& loaded, Slot slot) {
  return slot_output(loaded, slot, loaded.tensor(slot), Program(loaded.expert(slot).bytes()));
}

std::vector<Output> scales_only(const LoadedSpec& loaded,
                                Output (*scale_output)(const LoadedSpec&, Slot)) {
  std::vector<Output> result = {
      identity_output(loaded, Slot::kW13Weight),
      identity_output(loaded, Slot::kW2Weight),
      scale_output(loaded, Slot::kW13WeightScale),
      scale_output(loaded, Slot::kW2WeightScale),
  };
  for (const Slot slot : {Slot::kW13Bias, Slot::kW2Bias}) {
    if (loaded.has(slot)) result.push_back(identity_output(loaded, slot));
  }
  return result;
}

Output f32_bias_output(const LoadedSpec& loaded, Slot slot) {
  TensorSpec spec = loaded.tensor(slot);
  const ExpertMatrix expert = loaded.expert(slot);
  Program program(expert.bytes());
  if (spec.dtype == DType::kBF16) program.then(Recode{&kWidenBf16ToF32, expert.rows});
  spec.dtype = DType::kF32;
  return slot_output(loaded, slot, spec, std::move(program));
}

}  // namespace mxfp4
