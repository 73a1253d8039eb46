// The model directory around a blob: the other files of the model, which convert
// --include-rest copied.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/checksum/past_cache.hpp"

namespace mxfp4 {

// Throws Error::input, naming the file, unless it has this size and, unless `sum` is null, this
// checksum of the bytes that come `from` there. Calls `between` every few MB that are summed.
void require_bytes(const std::filesystem::path& path, int64_t size, const std::string* sum,
                   ReadFrom from = ReadFrom::kCache, const std::function<void()>& between = {});

// Checks size and checksum of every file of the model directory that the manifest names; without
// `sums` only the size. The summed bytes are read `from` there.
[[nodiscard]] std::vector<std::string> check_rest_files(
    const std::filesystem::path& model_directory, const Manifest& manifest, bool sums = true,
    ReadFrom from = ReadFrom::kCache);

// The model directory of a blob that find_blobs(given) found in `directory`: `given` itself if the
// blob was found in its folder mxfp4_repack, which may be a link; else the parent of the folder of
// that name which `given` is or, for one rank, lies in. Empty if there is none.
[[nodiscard]] std::filesystem::path model_directory_of(const std::filesystem::path& given,
                                                       const std::filesystem::path& directory);

}  // namespace mxfp4
