// Whether a file says of itself, at its beginning, that this program wrote it: the evidence by which
// a file may be replaced.
#pragma once

#include <filesystem>

namespace mxfp4 {

// In the __metadata__ of every file that unpack writes, and of no other.
inline constexpr const char* kUnpackedMark = "mxfp4_repack.unpacked";

// Whether the file begins with the header of a packed or unpacked layer, zstd or not. What comes
// after the header may be damaged or missing.
[[nodiscard]] bool is_our_layer(const std::filesystem::path& path);

}  // namespace mxfp4
