#include "formats/conversion/output_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <regex>
#include <string>
#include <string_view>
#include <system_error>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/journal.hpp"
#include "formats/blob/shard_manifest.hpp"
#include "formats/os/atomic_file.hpp"
#include "formats/os/directory.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// ".NAME.tmp-AbCd12"
constexpr std::string_view kTemporaryMark = ".tmp-";
constexpr size_t kTemporaryEnd = kTemporaryMark.size() + 6;

bool is_our_folder(const std::string& name) {
  return name == kBlobFolder || is_rank_directory(name);
}

bool is_our_name(const std::string& name, const std::set<std::string>& recorded) {
  static const std::regex kNames(
      R"(layer-[0-9]{5,}\.safetensors(\.zst)?)"
      R"(|mxfp4_repack(\.shard-[0-9]{3,}-of-[0-9]{3,})?\.json)"
      R"(|model\.safetensors\.index\.json)"
      R"(|\.mxfp4_repack\.(cleared|(shard-[0-9]{3,}-of-[0-9]{3,}\.)?progress))");
  return recorded.contains(name) || std::regex_match(name, kNames);
}

bool is_our_file(const std::string& name, const std::set<std::string>& recorded) {
  if (!is_temporary(name)) return is_our_name(name, recorded);
  return is_our_name(name.substr(1, name.size() - 1 - kTemporaryEnd), recorded);
}

void add_names(const Manifest& manifest, std::set<std::string>& names) {
  for (const ManifestFile& file : manifest.rest) names.insert(file.name);
}

// The files of a model directory have any names; manifests and journals say which ones are ours.
std::set<std::string> recorded_names(const fs::path& directory) {
  std::set<std::string> names;
  const fs::path blob = directory / kBlobFolder;
  const auto try_add = [&](const auto& read) {
    try {
      read();
    } catch (const Error&) {
      // A damaged record speaks for nothing.
    }
  };
  for (const fs::path& rank : find_blobs(blob)) {
    try_add([&] { add_names(read_manifest(rank), names); });
  }
  for (const fs::path& shard : find_shard_manifests(blob)) {
    try_add([&] { add_names(read_shard_manifest(shard).ranks.front(), names); });
  }
  std::error_code ignored;
  for (const fs::directory_entry& entry : list_directory(blob, ignored)) {
    if (!entry.path().filename().string().starts_with(kJournalPrefix)) continue;
    const std::vector<std::string> rest = read_journal(entry.path()).rest;
    names.insert(rest.begin(), rest.end());
  }
  return names;
}

// Everything below `directory`, files before their folders; throws for what is not ours.
void own_entries(const fs::path& directory, const std::set<std::string>& recorded,
                 std::vector<fs::path>& files, std::vector<fs::path>& folders) {
  std::error_code error;
  const std::vector<fs::directory_entry> entries = list_directory(directory, error);
  if (error) {
    throw Error::output(
        fmt::format("{}: cannot be listed: {}", directory.string(), error.message()));
  }
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    // What another process has removed since is nothing of all this.
    const bool special = entry.is_symlink(ignored) || entry.is_other(ignored);
    const bool folder = entry.is_directory(ignored);
    if (!special && folder && is_our_folder(name)) {
      own_entries(entry.path(), {}, files, folders);
      folders.push_back(entry.path());
    } else if (!special && !folder && is_our_file(name, recorded)) {
      files.push_back(entry.path());
    } else {
      throw Error::output(
          fmt::format("{}: holds {}, which this program did not write", directory.string(), name))
          .hint("choose an empty directory");
    }
  }
}

// Removes `path` and the folders in it as long as they are empty.
void remove_if_empty(const fs::path& path) {
  std::error_code ignored;
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : list_directory(path, ignored)) {
    if (entry.is_directory(ignored)) folders.push_back(entry.path());
  }
  for (const fs::path& folder : folders) remove_if_empty(folder);
  fs::remove(path, ignored);
}

// Whether the name still stands for the open directory.
bool is_same_directory(int descriptor, const fs::path& path) {
  struct stat opened {};
  struct stat named {};
  return fstat(descriptor, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

// 0: the last to go. Without its manifest a blob is incomplete for everybody, whatever happens
// next; without the journal nobody knows whose the other files are.
int removal_order(const fs::path& file) {
  const std::string name = file.filename().string();
  if (name == kManifestName) return 2;
  return name.starts_with(kJournalPrefix) ? 0 : 1;
}

bool lies_in(const fs::path& home, const fs::path& path) {
  std::error_code error;
  const fs::path relative = fs::weakly_canonical(path, error).lexically_relative(home);
  return !error && !relative.empty() && *relative.begin() != "..";
}

// That all this is on its way out is on record until the last of it is gone: whoever finds the rest
// knows whose it is. A full disk is no reason not to make room on it.
void note_clearing(const fs::path& journal, const std::set<std::string>& recorded) {
  try {
    Journal(journal).begin("", {recorded.begin(), recorded.end()});
  } catch (const Error&) {
    if (!recorded.empty()) throw;
  }
}

}  // namespace

void refuse_inputs_in(const fs::path& output, const std::vector<fs::path>& inputs) {
  std::error_code ignored;
  const fs::path home = fs::weakly_canonical(output, ignored);
  for (const fs::path& input : inputs) {
    // An input that is a link may lie there though its content does not.
    if (!lies_in(home, input) && !lies_in(home, input.parent_path() / ".")) continue;
    throw Error::output(fmt::format("{}: holds the input {}", output.string(), input.string()))
        .hint("choose another directory");
  }
}

bool is_temporary(const std::string& file_name) {
  return file_name.starts_with('.') && file_name.size() > 1 + kTemporaryEnd &&
         std::string_view(file_name)
             .substr(file_name.size() - kTemporaryEnd)
             .starts_with(kTemporaryMark);
}

OutputDirectory::OutputDirectory(fs::path path, OutputMode mode, bool shared)
    : path_(std::move(path)) {
  try {
    existed_ = fs::exists(path_);
    if (existed_ && !fs::is_directory(path_)) {
      throw Error::output(fmt::format("{}: exists and is not a directory", path_.string()));
    }
    lock(shared);
    open(mode);
  } catch (const fs::filesystem_error& error) {
    throw Error::output(fmt::format("{}: {}", path_.string(), error.code().message()));
  }
}

OutputDirectory::~OutputDirectory() {
  if (!keep_ && !existed_) remove_if_empty(path_);
  if (descriptor_ >= 0) close(descriptor_);
}

void OutputDirectory::lock(bool shared) {
  do {
    if (descriptor_ >= 0) close(descriptor_);
    make_directories(path_);
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor_ < 0) return;
    if (flock(descriptor_, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
      // Where directories cannot be locked, atomic renames still keep every file whole.
      if (errno != EWOULDBLOCK) return;
      close(std::exchange(descriptor_, -1));
      throw Error::output(fmt::format("{}: another process is writing here", path_.string()));
    }
    // The one that had the lock before may have removed what is locked now.
  } while (!is_same_directory(descriptor_, path_));
}

void OutputDirectory::open(OutputMode mode) {
  if (fs::is_empty(path_)) return;
  switch (mode) {
    case OutputMode::kNew:
      throw Error::output(fmt::format("{}: exists and is not empty", path_.string()))
          .hint("--force replaces an earlier result");
    case OutputMode::kReplace:
      clear();
      return;
    case OutputMode::kJoin:
      (void)files();
      return;
  }
}

std::vector<fs::path> OutputDirectory::files() const {
  std::vector<fs::path> files;
  std::vector<fs::path> folders;
  own_entries(path_, recorded_names(path_), files, folders);
  for (fs::path& file : files) file = file.lexically_relative(path_);
  return files;
}

void OutputDirectory::clear() const {
  std::vector<fs::path> files;
  std::vector<fs::path> folders;
  const std::set<std::string> recorded = recorded_names(path_);
  own_entries(path_, recorded, files, folders);
  std::error_code ignored;
  const fs::path inner = path_ / kBlobFolder;
  const fs::path journal =
      (fs::exists(inner, ignored) ? inner : path_) / fmt::format("{}cleared", kJournalPrefix);
  if (!files.empty()) {
    note_clearing(journal, recorded);
    files.push_back(journal);
  }
  std::ranges::stable_sort(files, std::greater{}, removal_order);
  for (const fs::path& file : files) remove_file(file);
  for (const fs::path& folder : folders) remove_file(folder);
}

void OutputDirectory::discard() const noexcept {
  try {
    clear();
  } catch (const std::exception&) {
    // What made the run fail is what the user has to know.
  }
}

void OutputDirectory::reserve(int64_t bytes) const {
  std::error_code error;
  const fs::space_info space = fs::space(path_, error);
  if (error) return;  // a file system that cannot tell fails at the write
  if (space.available < static_cast<uintmax_t>(bytes)) {
    throw Error::output(fmt::format("{}: needs up to {} bytes, the file system has {} free",
                                    path_.string(), bytes, space.available));
  }
}

}  // namespace mxfp4
