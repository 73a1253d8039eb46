// Tells by a file's beginning whether this program wrote it, which is the evidence that the file
// may be replaced. The rest of the file may be damaged or missing.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace mxfp4 {

// In the __metadata__ of every file that unpack writes, and of no other.
inline constexpr const char* kUnpackedMark = "mxfp4_repack.unpacked";
// In a shard of `unpack --as-published`: size and XXH3-128 of the config.json beside it,
// or kNoConfig.
inline constexpr const char* kPublishedConfig = "mxfp4_repack.config";
inline constexpr const char* kNoConfig = "-";

// Whether the file begins with the header of a packed or unpacked layer, zstd or not.
[[nodiscard]] bool is_our_layer(const std::filesystem::path& path);

// Whether the file, decoded if it is zstd, begins with these bytes. False if it cannot be read.
[[nodiscard]] bool begins_with_header(const std::filesystem::path& path, std::string_view header);

// The value of kPublishedConfig in the header of a safetensors file; empty if the file is not such
// a shard.
[[nodiscard]] std::string published_config(const std::filesystem::path& path);

}  // namespace mxfp4
