// Decides whether a blob is the exact repack of a checkpoint: makes every byte again and compares
// it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/checkpoint/opened_checkpoint.hpp"
#include "formats/conversion/run_limits.hpp"

namespace mxfp4 {

// Compares the bytes of one rank's blob in `directory` with those that `made`, the plan of its
// `manifest`, gives. Returns the differences in words, in an order that does not depend on threads:
// the first that differs in each job. Throws Error::input if the input itself is damaged.
[[nodiscard]] std::vector<std::string> compare_with_checkpoint(
    const PlannedCheckpoint& made, const std::filesystem::path& directory, const Manifest& manifest,
    const RunLimits& limits, const RunHooks& hooks);

}  // namespace mxfp4
