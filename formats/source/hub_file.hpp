// The exact name of a file in a Hugging Face hub cache, which costs nothing: a snapshot's files are
// links to blobs/NAME, and NAME of a large file is the SHA-256 of its bytes.
#pragma once

#include <filesystem>
#include <string>

namespace mxfp4 {

// 64 hexadecimal digits; empty for any other file. It says what was downloaded, not what is there:
// a program may have written through the link.
[[nodiscard]] std::string hub_sha256(const std::filesystem::path& path);

}  // namespace mxfp4
