// Puts the shards of a conversion together: after several convert --shard runs into one directory,
// checks that all is there and whole, and writes the manifests that one process would have written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "formats/blob/manifest.hpp"

namespace mxfp4 {

struct FinalizeHooks {
  std::function<void(int64_t bytes)> begin;     // that many bytes are to be checked
  std::function<void(int64_t bytes)> progress;  // that many more are
};

// The manifests of the complete result in `output`. Calls neither hook where an earlier run had
// checked everything. Throws Error::input where a shard is missing, damaged or of another
// conversion, Error::output for an `output` that another process writes.
[[nodiscard]] std::vector<Manifest> finalize(const std::filesystem::path& output, int threads,
                                             const FinalizeHooks& hooks);

}  // namespace mxfp4
