// Finds a model in a Hugging Face hub cache. huggingface_hub lays it out so: a root with one folder
// for each model, models--OWNER--NAME, which has blobs/, refs/ and snapshots/COMMIT/.
#pragma once

#include <filesystem>

namespace mxfp4 {

// For a cache's root or the folder of one of its models: the snapshot that refs/main names, else
// the only one. Any other path is returned unchanged. Throws Error::input if a root holds several
// models, or if refs/main names no snapshot of a model and there is not just one.
[[nodiscard]] std::filesystem::path hub_snapshot(const std::filesystem::path& path);

}  // namespace mxfp4
