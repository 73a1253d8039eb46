// Files that are named by a path or by an address ("hf://ORG/MODEL/config.json"), asked in one way.
// Errors are Error::input; those of far files name the address, those of files of this machine have
// no path in their text.
//
// What was learnt of a far folder is kept as long as one of its files is open, or somebody keeps it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/os/file.hpp"
#include "formats/os/positioned_file.hpp"

namespace mxfp4 {

class FarSession;
// Who opens a checkpoint or a blob by several of the functions below keeps this meanwhile.
[[nodiscard]] std::shared_ptr<FarSession> keep_far_files();

// Whether there is a folder, far: with a file in it.
[[nodiscard]] bool is_folder_at(const std::filesystem::path& path);
// Whether there is a file or folder. A far server that cannot say throws.
[[nodiscard]] bool exists_at(const std::filesystem::path& path);
// The same, of this machine even as a link that leads nowhere; true also if the system cannot say.
[[nodiscard]] bool is_listed_at(const std::filesystem::path& path);
// The names in a folder, in no order. `all`: set to false if the server does not list its files, and
// these are those that were found.
[[nodiscard]] std::vector<std::string> names_at(const std::filesystem::path& folder,
                                                bool* all = nullptr);

[[nodiscard]] FileStatus status_at(const std::filesystem::path& path);
// The text of a file of at most `most` bytes.
[[nodiscard]] std::string text_at(const std::filesystem::path& path, int64_t most);
// Whether reads wait for another machine: of an address, or of a file system that a program is behind
// (FUSE: rclone, gcsfuse, sshfs), which is slow where threads ask for bytes out of order.
[[nodiscard]] bool reads_ahead_at(const std::filesystem::path& path);
[[nodiscard]] PositionedFile file_at(const std::filesystem::path& path);
// The SHA-256 of the bytes as a hub gives it, 64 hexadecimal digits; empty: not known.
[[nodiscard]] std::string sha256_at(const std::filesystem::path& path);

// Says which bytes of a far file will be read next; expect_nothing() takes back what was said before.
void expect_at(const std::filesystem::path& path, int64_t begin, int64_t size);
void expect_nothing();

}  // namespace mxfp4
