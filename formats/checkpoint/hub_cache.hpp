// A Hugging Face hub cache, as huggingface_hub lays it out: in its root a folder for each model,
// models--OWNER--NAME, with blobs/, refs/ and snapshots/COMMIT/.
#pragma once

#include <filesystem>

namespace mxfp4 {

// `path` is a cache's root or the folder of one of its models: the snapshot that refs/main names, or
// the only one. Any other path is returned as it is. Throws Error::input where a root holds several
// models, or a model several snapshots and refs/main names none of them.
[[nodiscard]] std::filesystem::path hub_snapshot(const std::filesystem::path& path);

}  // namespace mxfp4
