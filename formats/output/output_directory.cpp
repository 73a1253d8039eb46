#include "formats/output/output_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/blob/shard_manifest.hpp"
#include "formats/os/atomic_file.hpp"
#include "formats/os/directory.hpp"
#include "formats/output/inputs_in_output.hpp"
#include "formats/output/own_files.hpp"
#include "lib/core/error.hpp"
#include "lib/core/human_bytes.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// The path itself, or the nearest directory above it that exists.
fs::path existing_above(const fs::path& path) {
  std::error_code error;
  fs::path at = fs::absolute(path, error).lexically_normal();
  while (!fs::exists(at, error) && at != at.parent_path()) at = at.parent_path();
  return at;
}

// "packed" for "packed/": paths below it are compared by their parts.
fs::path without_slash(fs::path path) {
  if (path.has_relative_path() && !path.has_filename()) path = path.parent_path();
  return path;
}

// Whether the directory is a conversion's: complete, of several ranks, or begun.
bool holds_conversion(const fs::path& directory) {
  std::error_code error;
  if (fs::exists(directory / kManifestName, error)) return true;
  return std::ranges::any_of(list_directory(directory, error), [&](const auto& entry) {
    const std::string name = entry.path().filename().string();
    if (is_rank_directory(name)) return fs::exists(entry.path() / kManifestName, error);
    return is_shard_manifest(name) || name.starts_with(kJournalPrefix);
  });
}

// Refuses a link on the way that leads nowhere: no directory can be made in its place.
void refuse_broken_links(const fs::path& path) {
  fs::path at;
  for (const fs::path& part : path) {
    at /= part;
    std::error_code error;
    if (!fs::is_symlink(at, error) || fs::exists(at, error)) continue;
    throw Error::output(fmt::format("a broken link, to {}", shown(fs::read_symlink(at).string())))
        .in_file(at.string())
        .hint("make the directory that the link names, or choose another one");
  }
}

}  // namespace

void refuse_inside_blob(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(path, error);
  for (fs::path at = whole.parent_path(); at != at.parent_path(); at = at.parent_path()) {
    if (!holds_conversion(at)) continue;
    throw Error::output(fmt::format("lies inside the blob {}", shown(at.string())))
        .in_file(path.string())
        .hint("choose another directory");
  }
}

OutputDirectory::OutputDirectory(fs::path path, const std::vector<fs::path>& inputs, bool shared,
                                 bool look_only)
    : path_(without_slash(std::move(path))), look_only_(look_only) {
  refuse_inside_blob(path_);
  try {
    refuse_broken_links(path_);
    if (!look_only_) Replacement::recover(path_);
    const bool existed = fs::exists(path_);
    if (existed && !fs::is_directory(path_)) {
      throw Error::output("exists and is not a directory").in_file(path_.string());
    }
    is_new_ = !existed && !look_only_;
    if (existed || is_new_) lock(shared);
    if (existed && !inputs.empty()) refuse_inputs_in(path_, inputs);
  } catch (const fs::filesystem_error& error) {
    throw Error::output(error.code().message()).in_file(path_.string());
  }
}

OutputDirectory::~OutputDirectory() {
  replacement_.reset();
  if (!keep_ && is_new_ && directory_) directory_->remove_empty_folders();
}

void OutputDirectory::lock(bool shared) {
  constexpr int kTries = 1000;
  for (int tries = 0; tries < kTries; ++tries) {
    made_.make(path_);
    // A new directory has no link in its path's place.
    directory_.emplace(path_, /*follow=*/!is_new_);
    if (flock(directory_->descriptor(), (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
      // The file system has no locks for directories; atomic renames still keep every file whole.
      if (errno != EWOULDBLOCK) return;
      made_.keep();  // it is the other process's by now
      directory_.reset();
      throw another_process_writes(path_);
    }
    // The process that held the lock before may have removed the directory that we opened and
    // locked.
    const std::optional<FileState> opened = directory_->state(".");
    locked_ = opened && identity_of(path_) == opened->identity;
    if (locked_) return;
  }
  directory_.reset();
  throw another_process_writes(path_);
}

bool OutputDirectory::exists() const {
  if (directory_) return true;
  std::error_code error;
  const bool there = fs::exists(path_, error);
  if (error) throw Error::output(error.message()).in_file(path_.string());
  return there;
}

bool OutputDirectory::is_empty() const {
  std::error_code error;
  const bool empty = fs::is_empty(path_, error);
  if (error) throw Error::output(error.message()).in_file(path_.string());
  return empty;
}

void OutputDirectory::replace(const std::function<void()>& between,
                              const std::optional<BegunReplacement>& begun) {
  OwnFiles old = require_own_files(path_, Evidence::kContent, between);
  replaces_ = true;
  if (look_only_) return;
  if (begun) {
    replacement_.emplace(*directory_, std::move(old), *begun);
  } else {
    replacement_.emplace(*directory_, std::move(old));
  }
}

std::optional<BegunReplacement> OutputDirectory::begun_replacement() const {
  return directory_ ? Replacement::begun(*directory_) : std::nullopt;
}

void OutputDirectory::require_in_place() const {
  const std::optional<FileState> opened = directory_->state(".");
  if (opened && identity_of(path_) == opened->identity) return;
  throw Error::output("another directory has got this name; the files are in the one that had it")
      .in_file(path_.string());
}

std::string OutputDirectory::publish() {
  std::string note;
  if (replacement_) {
    replacement_->check_old();
    note = replacement_->exchange();
  }
  keep();
  return note;
}

std::vector<fs::path> OutputDirectory::files() const {
  if (!directory_) return {};
  std::vector<fs::path> files;
  for (const OwnFile& file : require_own_files(home().path(), Evidence::kName).files) {
    files.push_back(file.path);
  }
  return files;
}

std::optional<int64_t> OutputDirectory::free_bytes() const {
  std::error_code error;
  const fs::space_info space = fs::space(existing_above(directory_ ? home().path() : path_), error);
  if (error) return std::nullopt;
  return static_cast<int64_t>(std::min<uintmax_t>(space.available, INT64_MAX));
}

void OutputDirectory::require_writable() const {
  const fs::path whole = existing_above(path_);
  const fs::path place = replaces_ ? whole.parent_path() : whole;
  if (access((place / ".").c_str(), W_OK | X_OK) == 0) return;
  const int code = errno;
  throw Error::output(fmt::format("cannot write here: {}", std::strerror(code)))
      .in_file(place.string());
}

void OutputDirectory::reserve(int64_t bytes, std::string_view otherwise) const {
  const std::optional<int64_t> available = free_bytes();
  if (!available || *available >= bytes) return;  // if it is not known, writing will fail
  if (!replaces_) {
    throw Error::output(fmt::format("needs up to {}, the file system has {} free",
                                    human_bytes(bytes), human_bytes(*available)))
        .in_file(path_.string())
        .hint(fmt::format("choose a directory on another file system{}", otherwise));
  }
  throw Error::output(
      fmt::format("needs up to {} beside the old result, which stays until the new one is "
                  "complete; the file system has {} free",
                  human_bytes(bytes), human_bytes(*available)))
      .in_file(path_.string())
      .hint("remove the old result first, or choose a directory on another file system");
}

}  // namespace mxfp4
