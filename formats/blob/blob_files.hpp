// The files of a blob beside its layers: the index, and files that are not the blob's. Checks
// return the differences, one text each; a file that the system does not let us read
// is Error::input.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"

namespace mxfp4 {

// Checks the index.
[[nodiscard]] std::vector<std::string> check_index(const std::filesystem::path& directory,
                                                   const Manifest& manifest);

// Checks the index, and that the directory holds no layer files but the manifest's. Layer files
// that are missing are found by check_layer_files (blob_check.hpp).
[[nodiscard]] std::vector<std::string> check_blob_files(const std::filesystem::path& directory,
                                                        const Manifest& manifest);

// The second half of check_blob_files: the directory holds no layer files but the manifest's.
[[nodiscard]] std::vector<std::string> check_other_files(const std::filesystem::path& directory,
                                                         const Manifest& manifest);

}  // namespace mxfp4
