// Whether a blob holds what its manifest says. Checks return the differences, one text each.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "formats/blob/blob_reader.hpp"

namespace mxfp4 {

// Checks the index, and that the directory holds the manifest's files and no other layer files.
[[nodiscard]] std::vector<std::string> check_blob_files(const std::filesystem::path& directory,
                                                        const Manifest& manifest);

// Whether the file is an index of layer files, and of nothing else.
[[nodiscard]] bool is_blob_index(const std::filesystem::path& path);

// Whether the file can be read, and is no index of any files.
[[nodiscard]] bool is_damaged_index(const std::filesystem::path& path);

// The second half of check_blob_files: the directory holds no layer files but the manifest's.
[[nodiscard]] std::vector<std::string> check_other_files(const std::filesystem::path& directory,
                                                         const Manifest& manifest);

// Checks size and checksum of every file of the model directory that the manifest names.
[[nodiscard]] std::vector<std::string> check_rest_files(
    const std::filesystem::path& model_directory, const Manifest& manifest);

// The model directory around the blob in `directory`: the parent of the folder mxfp4_repack. Empty
// when the blob was taken out of it, and stands alone.
[[nodiscard]] std::filesystem::path model_directory_of(const std::filesystem::path& directory);

// Throws Error::input, without the file's name, unless size, checksum and header of the file are
// those of the manifest; to be called before data is read. Decodes nothing, so it is cheaper than
// check_layer_files: the tensors' own checksums are not compared.
void require_layer_file(const LayerReader& reader, const Manifest& manifest,
                        const ManifestLayer& layer);

// Checks the layer files of one rank whole: size, checksum, header and metadata, every tensor's
// checksum. `progress` is told the stored bytes of piece after piece, one call at a time. Never
// throws Error::input: damage is a finding.
[[nodiscard]] std::vector<std::string> check_layer_files(
    const std::filesystem::path& directory, const Manifest& manifest, int threads,
    const std::function<void(int64_t)>& progress);

}  // namespace mxfp4
