// Decides whether a blob is the exact repack of a checkpoint: makes every byte again and compares
// it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/conversion/run_limits.hpp"
#include "formats/decision/opened_checkpoint.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {

// What one rank's manifest and an input give together.
struct ManifestPlan {
  OpenedCheckpoint input;             // with the manifest's layers only
  const Layout* layout = nullptr;     // null: the blob stops at the loaded layout
  Plan plan;                          // of the manifest's rank only: a file for each of its layers
  std::vector<std::string> findings;  // why the manifest is not one of this input; then no plan
};

// Plans again what `manifest`, of at least one layer, describes: from `source`, which was opened
// for options.path. `directory` is the manifest's, for messages. The manifest says the family, not
// `options`. Throws Error::input if the input itself is damaged.
[[nodiscard]] ManifestPlan plan_of_manifest(const std::shared_ptr<Source>& source,
                                            CheckpointOptions options,
                                            const std::filesystem::path& directory,
                                            const Manifest& manifest);

// Compares one rank's blob in `directory` with the repack of `source`, which was opened for
// options.path: model facts, slice and tensors first, and if they are equal, every byte. The
// manifest says the family, not `options`. Returns the differences in words, in an order that does
// not depend on threads: of bytes, the first that differs in each job. Throws Error::input if the
// input itself is damaged.
[[nodiscard]] std::vector<std::string> compare_with_checkpoint(
    const std::shared_ptr<Source>& source, CheckpointOptions options,
    const std::filesystem::path& directory, const Manifest& manifest, const RunLimits& limits,
    const RunHooks& hooks);

}  // namespace mxfp4
