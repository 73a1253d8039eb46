// The inverse of a conversion: the loaded layout that was packed, padding cropped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/conversion/run_limits.hpp"

namespace mxfp4 {

struct RestoreResult {
  int64_t files = 0;
  int64_t bytes = 0;           // of them
  std::set<std::string> lost;  // what the layouts cannot give back, in words
};

// Data bytes that restoring these blobs writes at most.
[[nodiscard]] int64_t restored_bytes(const std::vector<Manifest>& manifests);

// Writes layer-NNNNN.safetensors for every layer of one rank's blob into `directory`, each whole or
// not at all. Every file of the blob is checked before it is read. Throws Error::input for a blob
// that does not hold, Error::output.
[[nodiscard]] RestoreResult restore_blob(const std::filesystem::path& blob,
                                         const Manifest& manifest,
                                         const std::filesystem::path& directory,
                                         const RunLimits& limits, const RunHooks& hooks);

}  // namespace mxfp4
