// The first and the last steps of commands that take a blob.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/console.hpp"
#include "formats/decision/given_path.hpp"

namespace mxfp4 {

// What to do about files of the blob at `path` that are missing or damaged. convert resumes no
// directory that holds what it did not write, as a folder or a link in a layer file's place.
[[nodiscard]] std::string mend_blob(const std::filesystem::path& path);

// Warns if ranks of the blob at `path` are missing. `manifests`: of the ranks that are there.
void warn_of_missing_ranks(const std::filesystem::path& path,
                           const std::vector<Manifest>& manifests, const Console& console);

}  // namespace mxfp4
