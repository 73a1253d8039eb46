// Refuses an OUT in which the input lies, or that would make a blob of the checkpoint's directory.
#pragma once

#include <filesystem>
#include <vector>

#include "formats/os/directory.hpp"

namespace mxfp4 {

// Throws Error::output if one of the inputs lies in `output`, also if its path does not show it:
// through a link, or through another mount of the same volume. To find such a mount, it makes a file in
// `output` and removes it; with `look_only` it makes none, and sees no such mount.
void refuse_inputs_in(const Directory& output, const std::vector<std::filesystem::path>& inputs,
                      bool look_only);

// Throws Error::usage if `output` would make a blob of the directory that `checkpoint` is or lies in:
// if it is, or lies in, a folder there that has the name of a blob's folder or of a rank's.
void refuse_blob_folder_in(const std::filesystem::path& checkpoint,
                           const std::filesystem::path& output);

}  // namespace mxfp4
