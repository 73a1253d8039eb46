// README.md of a blob: the model card that a hub shows. It says what the blob was made from, what
// for, and how to serve, verify and upload it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "formats/blob/manifest.hpp"

namespace mxfp4 {

inline constexpr std::string_view kModelCardName = "README.md";

// Markdown, which begins with the hub's metadata and ends with a checksum of itself. `manifests`
// belong to the blob's ranks, at least one.
[[nodiscard]] std::string model_card(const std::vector<Manifest>& manifests);

// Whether model_card() made the text, and it was not edited since.
[[nodiscard]] bool is_model_card(std::string_view text);
// The same for a file; false if it cannot be read.
[[nodiscard]] bool is_model_card_file(const std::filesystem::path& path);

// Writes the card of the blob whose ranks lie in `blobs`, beside the manifest or beside the ranks'
// directories; returns its path. Throws Error::output if another README.md is there.
std::filesystem::path write_model_card(const std::vector<std::filesystem::path>& blobs,
                                       const std::vector<Manifest>& manifests);

}  // namespace mxfp4
