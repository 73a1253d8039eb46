// Writes the experts of a blob as the checkpoint that it was made from has them: its names, types,
// shapes and shards. The directory is a checkpoint of the experts only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "formats/blob/restored_slots.hpp"
#include "formats/conversion/restore.hpp"
#include "formats/source/source.hpp"

namespace mxfp4 {

// Data bytes that write_as_published() writes.
[[nodiscard]] int64_t published_bytes(const Source& source);

// A blob as its checkpoint (checkpoint/blob_source.hpp), and what reading takes.
struct PublishedBlob {
  Source& source;
  std::span<const ExpertShare> shares;  // by tensor of the source
  std::span<const RestorePlan> plans;   // the programs that run
};

// Writes every tensor of the blob's source into `directory`: the shards, their index, and
// config.json if the checkpoint had one. Tensors of a checkpoint that was not made of safetensors
// files get one shard a layer. `mark` is what --force recognises the shards by. Throws Error::usage
// if one job exceeds the budget of --memory, Error::input for a damaged blob, and Error::output.
[[nodiscard]] RestoreResult write_as_published(const PublishedBlob& blob, const std::string& mark,
                                               const Directory& directory, const RunLimits& limits,
                                               const RunHooks& hooks, ReadBack read_back);

}  // namespace mxfp4
