// Which files below a directory this program wrote, and so may replace. A name is no evidence, nor
// is a manifest that names a file: what counts is the file's own content.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/os/file_identity.hpp"

namespace mxfp4 {

// The beginning of every journal's name.
inline constexpr std::string_view kJournalPrefix = ".mxfp4_repack.";

// Folders inside an OUT that cannot be exchanged itself: replacement.hpp.
inline constexpr std::string_view kStagingPrefix = ".mxfp4_repack-";

enum class Evidence : uint8_t {
  kName,     // a name that this program gives; of a journal its form, of a model card its seal: to
             // join another's files
  kContent,  // a layer's mark, the form of a record, or size and checksum in a record beside it
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

// Looks through `directory`, its folders of ranks and its blob's folder; other folders, and links,
// are foreign and not entered; those of a replacement are left out. `between` is called every few
// MB that are read, and may throw. Throws Error::output when a folder cannot be listed.
[[nodiscard]] OwnFiles find_own_files(const std::filesystem::path& directory, Evidence evidence,
                                      const std::function<void()>& between = {});

// Throws Error::output naming the first foreign file, if there is one.
void refuse_foreign(const std::filesystem::path& directory, const OwnFiles& own);

// Removes the files that are still as they were looked at, records of others last, then folders
// that are empty. Throws Error::output.
void remove_own_files(const std::filesystem::path& directory, const OwnFiles& own);

// A temporary of a run that is over, if no process writes the directory any more.
[[nodiscard]] bool is_temporary(const std::string& file_name);

}  // namespace mxfp4
