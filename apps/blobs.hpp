// The first and the last steps of commands that take a blob.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "apps/console.hpp"
#include "formats/decision/given_path.hpp"

namespace mxfp4 {

// What to do about layer files that are missing or damaged.
inline constexpr std::string_view kMendBlob =
    "convert again, with the same flags and --resume --check; or fetch those files again";

// Warns if ranks of the blob at `path` are missing. `manifests`: of the ranks that are there.
void warn_of_missing_ranks(const std::filesystem::path& path,
                           const std::vector<Manifest>& manifests, const Console& console);

// Writes the model card of the complete blob at `path` and says how to upload it. Throws
// Error::output.
void add_model_card(const std::filesystem::path& path, const Console& console);

}  // namespace mxfp4
