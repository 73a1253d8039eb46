// Finds the files of a complete result that are not as its manifests say; --resume makes them
// again.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "formats/blob/journal.hpp"
#include "formats/blob/manifest.hpp"

namespace mxfp4 {

struct FinishedBlob {
  JournalContent whole;              // the files that are as the manifests say
  std::vector<std::string> damages;  // "<file>: <what>", for each other file
  // What the manifests say of each other file, by its name in the blob; indexes are not among them.
  std::map<std::string, FinishedFile> lost;
};

// The layer files that a manifest names, and the files of the model directory around the blob.
[[nodiscard]] std::vector<FinishedFile> files_of(const Manifest& manifest);
[[nodiscard]] std::vector<FinishedFile> rest_of(const Manifest& manifest);

// Checks the files of `manifests` in `blob` and in the model directory around it: whether they are
// there, their sizes, headers and seek tables; with `all_bytes` their checksums, too; with
// `indexed` the ranks' indexes, which a shard does not have. Calls `between` every few MB that are
// read; it may throw. Throws Error::input for a file that the system does not let us read.
[[nodiscard]] FinishedBlob look_at_finished(const std::filesystem::path& blob,
                                            const std::vector<Manifest>& manifests, bool indexed,
                                            bool all_bytes, const std::function<void()>& between);

}  // namespace mxfp4
