#include "lib/revisions/knob_conditions.hpp"

#include <fmt/format.h>

#include "lib/core/error.hpp"
#include "lib/layouts/knobs.hpp"

namespace mxfp4 {

bool marlin_int8_activations(const Target& target) { return marlin_input_dtype(target) == "int8"; }

bool marlin_fp8_activations(const Target& target) { return marlin_input_dtype(target) == "fp8"; }

bool marlin_fp8_on_other_arch(const Target& target) {
  if (!marlin_fp8_activations(target) || target.arch.empty()) return false;
  const int capability = cuda_capability(target.arch).value_or(0);
  return capability != 89 && capability / 10 != 12;
}

bool humming_8bit_activations(const Target& target) {
  return humming_input_dtype(target) != "none";
}

bool humming_wgmma(const Target& target) {
  const std::optional<int> capability = cuda_capability(target.arch);
  if (!capability) {
    throw Error::usage(
        fmt::format("HUMMING's layout depends on the CUDA architecture: expected "
                    "an arch such as sm90, found '{}'",
                    target.arch));
  }
  return *capability / 10 == 9;
}

bool arch_is_not_x86(const Target& target) {
  return !target.arch.empty() && target.arch != "x86_64";
}

}  // namespace mxfp4
