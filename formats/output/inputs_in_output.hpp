// Refuses an OUT in which the input lies.
#pragma once

#include <filesystem>
#include <vector>

#include "formats/os/directory.hpp"

namespace mxfp4 {

// Throws Error::output if one of the inputs lies in `output`, also if its path does not show it:
// through a link, or through another mount of the same volume. To find such a mount, it makes a
// file in `output` and removes it; with `look_only` it makes none, and sees no such mount.
void refuse_inputs_in(const Directory& output, const std::vector<std::filesystem::path>& inputs,
                      bool look_only);

}  // namespace mxfp4
