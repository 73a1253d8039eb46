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

namespace mxfp4 {

// Compares one rank's blob in `directory` with the repack of `source`, which was opened for
// options.path: model facts, slice and tensors first, and if they are equal, every byte. The family
// is the manifest's, not that of `options`. Returns the differences in words, in an order that does
// not depend on threads: of bytes, the first that differs in each job. Throws Error::input if the
// input itself is damaged.
[[nodiscard]] std::vector<std::string> compare_with_checkpoint(
    const std::shared_ptr<Source>& source, CheckpointOptions options,
    const std::filesystem::path& directory, const Manifest& manifest, const RunLimits& limits,
    const RunHooks& hooks);

}  // namespace mxfp4
