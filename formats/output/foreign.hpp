// Files of others in a directory that is to be removed.
#pragma once

#include <filesystem>

namespace mxfp4 {

// Throws Error::output, naming the first file in `directory` that the manifests in it do not name,
// or that is a small file of the model directory which somebody edited.
void refuse_foreign(const std::filesystem::path& directory);

}  // namespace mxfp4
