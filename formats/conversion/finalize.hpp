// Puts the shards of a conversion together. After several runs of convert --shard into one
// directory, it checks that all files are there and whole, and writes the manifests that a single
// process would have written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"

namespace mxfp4 {

struct FinalizeHooks {
  std::function<void(int64_t bytes)> begin;     // the bytes that are to be checked
  std::function<void(int64_t bytes)> progress;  // how many more bytes are checked
};

struct Finalized {
  std::vector<Manifest> manifests;
  // What is not as the manifests of an earlier run say; empty: the result is complete.
  std::vector<std::string> findings{};
  std::string leftover{};  // what could not be removed; empty: all could
};

// Puts the shards in `output` together. If the shards were put together before, only checks names,
// sizes and headers, and calls no hook. Throws Error::input if a shard is missing, damaged or of
// another conversion, Error::output if another process writes `output`.
[[nodiscard]] Finalized finalize(const std::filesystem::path& output, int threads,
                                 const FinalizeHooks& hooks);

}  // namespace mxfp4
