// Finds the files of a complete result that are no longer as its manifests say; --resume makes them
// again.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "formats/blob/journal.hpp"
#include "formats/blob/manifest.hpp"

namespace mxfp4 {

struct FinishedBlob {
  JournalContent whole;              // its files that are as they should be
  std::vector<std::string> damages;  // "<file>: <what>", of the others
};

// Looks at the files of `manifests` in `blob` and of the model directory around it: that they are
// there, their sizes, headers and seek tables; with `all_bytes` their checksums too; with `indexed`
// the ranks' indexes, which a shard has not. `between` is called every few MB that are read, and
// may throw.
[[nodiscard]] FinishedBlob look_at_finished(const std::filesystem::path& blob,
                                            const std::vector<Manifest>& manifests, bool indexed,
                                            bool all_bytes, const std::function<void()>& between);

}  // namespace mxfp4
