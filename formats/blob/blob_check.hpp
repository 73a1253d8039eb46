// Checks whether a blob's layer files hold what its manifest says. Checks return the differences,
// one text each; a file that the system does not let us read is Error::input.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "formats/blob/blob_reader.hpp"
#include "formats/checksum/past_cache.hpp"

namespace mxfp4 {

// Throws InputFault, without the file's name, unless size and compression of a layer file are the
// manifest's, and its header is what follows from the manifest, byte for byte; names the first tensor
// that differs.
void require_description(const LayerReader& reader, const Manifest& manifest,
                         const ManifestLayer& stated);

// Throws Error::input, without the file's name, unless size, checksum and header of the file are
// as in the manifest. Call it before data is read. It decodes no data and does not compare the
// tensors' own checksums, so it is cheaper than check_layer_files.
void require_layer_file(const LayerReader& reader, const Manifest& manifest,
                        const ManifestLayer& layer);

// One finding for each layer file that is missing or has another size than in the manifest. Opens
// no file.
[[nodiscard]] std::vector<std::string> check_layer_sizes(const std::filesystem::path& directory,
                                                         const Manifest& manifest);

// The part of check_layer_files that reads no data: sizes, headers and seek tables.
[[nodiscard]] std::vector<std::string> check_layer_headers(const std::filesystem::path& directory,
                                                           const Manifest& manifest);

// Checks everything in the layer files of one rank: size, checksum, header, metadata, and every
// tensor's checksum. Calls `progress` with the stored bytes of each piece, one call at a time.
// Damage is a finding, not an error. From the device: each byte that is summed comes from there.
[[nodiscard]] std::vector<std::string> check_layer_files(
    const std::filesystem::path& directory, const Manifest& manifest, int threads,
    const std::function<void(int64_t)>& progress, ReadFrom from = ReadFrom::kCache);

}  // namespace mxfp4
