// Finds the files below a directory that this program wrote, and so may replace. Neither a file's
// name nor a manifest that names it is evidence enough to remove it: its own content is.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/os/directory.hpp"

namespace mxfp4 {

enum class Evidence : uint8_t {
  kName,     // for files that stay: a name that this program gives; of a journal also its form
  kContent,  // for removal: a layer's mark, the form of a record, or size and checksum in a record
};

struct OwnFile {
  std::filesystem::path path;  // relative to the directory
  FileState state;             // when it was looked at
};

struct OwnFiles {
  std::vector<OwnFile> files;
  std::vector<std::filesystem::path> folders;  // relative, inner ones first
  std::vector<std::filesystem::path> foreign;  // relative: everything else
};

// Looks through `directory`, its folders of ranks and its blob's folder. Other folders, and links,
// are foreign and not entered. Calls `between` every few MB
// that are read; it may throw. Throws Error::output if a folder cannot be listed.
[[nodiscard]] OwnFiles find_own_files(const std::filesystem::path& directory, Evidence evidence,
                                      const std::function<void()>& between = {});

// The same. Throws Error::output naming the first foreign file, if there is one.
[[nodiscard]] OwnFiles require_own_files(const std::filesystem::path& directory, Evidence evidence,
                                         const std::function<void()>& between = {});

// Removes the files that did not change since they were looked at, records last, then the folders
// that are empty. Throws Error::output.
void remove_own_files(const Directory& directory, const OwnFiles& own);

}  // namespace mxfp4
