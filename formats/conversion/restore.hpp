// The inverse of a conversion: writes the loaded layout that was packed, without its padding, or
// the experts as the checkpoint has them: its names, types, shapes and shards.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/checkpoint/blob_source.hpp"
#include "formats/conversion/run_limits.hpp"
#include "formats/os/directory.hpp"

namespace mxfp4 {

struct RestoreResult {
  int64_t files = 0;
  int64_t bytes = 0;           // of these files
  std::set<std::string> lost;  // what the layouts cannot give back, in words
};

// Data bytes that restoring these blobs writes at most.
[[nodiscard]] int64_t restored_bytes(const std::vector<Manifest>& manifests);

// Data bytes that write_as_published() writes.
[[nodiscard]] int64_t published_bytes(const Source& source);

// Throws Error::unsupported for a layout that keeps other numbers than the checkpoint's.
void require_restorable(const std::filesystem::path& blob, const Manifest& manifest);

// Writes layer-NNNNN.safetensors for every layer of one rank's blob into `directory`, each whole or
// not at all. Checks every file of the blob before it is read. Throws Error::input for a damaged
// blob, and Error::output; as require_restorable.
[[nodiscard]] RestoreResult restore_blob(const std::filesystem::path& blob,
                                         const Manifest& manifest, const Directory& directory,
                                         const RunLimits& limits, const RunHooks& hooks);

// Writes every tensor of a blob as its checkpoint into `directory`: the shards, their index, and
// config.json if the checkpoint had one. Tensors of a checkpoint that was not made of safetensors
// files get one shard a layer. Throws Error::usage if one job exceeds the budget of --memory,
// Error::input for a damaged blob, and Error::output.
[[nodiscard]] RestoreResult write_as_published(const BlobSource& blob, const std::string& layout,
                                               const Directory& directory, const RunLimits& limits,
                                               const RunHooks& hooks);

}  // namespace mxfp4
