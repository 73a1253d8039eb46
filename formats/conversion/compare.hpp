// Whether a blob is the exact repack of a checkpoint: every byte is made again and compared.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/conversion/opened_checkpoint.hpp"
#include "formats/conversion/run_limits.hpp"

namespace mxfp4 {

// Compares one rank's blob in `directory` with what `source`, opened for options.path, gives: sizes,
// slice and names first, then every byte. `options` need not name the family, which the manifest
// does. Returns every difference in words, in an order that does not depend on threads. Throws
// Error::input when the input itself is damaged.
[[nodiscard]] std::vector<std::string> compare_with_checkpoint(
    const std::shared_ptr<Source>& source, CheckpointOptions options,
    const std::filesystem::path& directory, const Manifest& manifest, const RunLimits& limits,
    const RunHooks& hooks);

}  // namespace mxfp4
