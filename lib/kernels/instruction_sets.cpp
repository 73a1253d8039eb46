#include "lib/kernels/instruction_sets.hpp"

#include <hwy/targets.h>

namespace mxfp4::kernels {

std::vector<int64_t> instruction_set_targets() { return hwy::SupportedAndGeneratedTargets(); }

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (int64_t target : instruction_set_targets()) {
    names.emplace_back(hwy::TargetName(target));
  }
  return names;
}

bool use_instruction_set(std::string_view name) {
  for (int64_t target : instruction_set_targets()) {
    if (name != hwy::TargetName(target)) continue;
    hwy::DisableTargets(target - 1);  // a better target is a lower bit
    return true;
  }
  return false;
}

}  // namespace mxfp4::kernels
