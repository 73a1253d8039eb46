// Writes the experts of a blob as the checkpoint that it was made from has them: its names, types,
// shapes and shards. The directory is a checkpoint of the experts only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "formats/conversion/restore.hpp"
#include "formats/source/source.hpp"

namespace mxfp4 {

// Data bytes that write_as_published() writes.
[[nodiscard]] int64_t published_bytes(const Source& source);

// Writes every tensor of `source` (open_blob_source) into `directory`: the shards, their index, and
// config.json if the checkpoint had one. Tensors of a checkpoint that was not made of safetensors files
// get one shard a layer. `mark` is what --force recognises the shards by. Bounded memory. Throws
// Error::input for a damaged blob, and Error::output.
[[nodiscard]] RestoreResult write_as_published(Source& source, const std::string& mark,
                                               const Directory& directory, const RunHooks& hooks,
                                               ReadBack read_back);

}  // namespace mxfp4
