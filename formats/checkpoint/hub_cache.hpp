// The folder of one model in a Hugging Face hub cache: models--OWNER--NAME with blobs/, refs/ and
// snapshots/COMMIT/, as huggingface_hub lays it out.
#pragma once

#include <filesystem>

namespace mxfp4 {

// The snapshot that refs/main names, or the only one; `path` itself where it is no such folder.
// Throws Error::input where there are several and refs/main names none of them.
[[nodiscard]] std::filesystem::path hub_snapshot(const std::filesystem::path& path);

}  // namespace mxfp4
