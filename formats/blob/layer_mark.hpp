// Tells by a file's beginning whether this program wrote it, which is the evidence that the file
// may be replaced. The rest of the file may be damaged or missing.
#pragma once

#include <filesystem>
#include <string_view>

namespace mxfp4 {

// In the __metadata__ of every file that unpack writes, and of no other.
inline constexpr const char* kUnpackedMark = "mxfp4_repack.unpacked";

// Whether the file begins with the header of a packed or unpacked layer, zstd or not.
[[nodiscard]] bool is_our_layer(const std::filesystem::path& path);

// Whether the file, decoded if it is zstd, begins with these bytes. False if it cannot be read.
[[nodiscard]] bool begins_with_header(const std::filesystem::path& path, std::string_view header);

}  // namespace mxfp4
