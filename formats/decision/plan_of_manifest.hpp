// A manifest's blob planned again for a checkpoint: whether one follows from the other, before any
// byte is made.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/decision/open_checkpoint.hpp"

namespace mxfp4 {

// What one rank's manifest and an input give together; the input has only the manifest's layers.
struct ManifestPlan : PlannedCheckpoint {
  std::vector<std::string> findings;  // why the manifest is not one of this input; then no plan
};

// Plans again what `manifest`, of at least one layer, describes: from `source`, which was opened
// for options.path. `directory` is the manifest's, for messages. The manifest says the family, not
// `options`. Throws Error::input if the input itself is damaged.
[[nodiscard]] ManifestPlan plan_of_manifest(const std::shared_ptr<Source>& source,
                                            CheckpointOptions options,
                                            const std::filesystem::path& directory,
                                            const Manifest& manifest);

}  // namespace mxfp4
