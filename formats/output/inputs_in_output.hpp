// Refuses an OUT in which the input lies.
#pragma once

#include <filesystem>
#include <vector>

namespace mxfp4 {

// Throws Error::output if one of the inputs lies in `output`, also if its path does not show it:
// through a link, or through another mount of the same volume.
void refuse_inputs_in(const std::filesystem::path& output,
                      const std::vector<std::filesystem::path>& inputs);

}  // namespace mxfp4
