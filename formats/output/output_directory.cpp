#include "formats/output/output_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/os/atomic_file.hpp"
#include "formats/os/directory.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// Whether `path` still names the open directory.
bool is_same_directory(int descriptor, const fs::path& path) {
  struct stat opened {};
  struct stat named {};
  return fstat(descriptor, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

// The path itself, or the nearest directory above it that exists.
fs::path existing_above(const fs::path& path) {
  std::error_code error;
  fs::path at = fs::absolute(path, error).lexically_normal();
  while (!fs::exists(at, error) && at != at.parent_path()) at = at.parent_path();
  return at;
}

// Refuses a directory inside another result: its files would be foreign to that result's own
// --resume and --force.
void refuse_inside_blob(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(path, error);
  for (fs::path at = whole.parent_path(); at != at.parent_path(); at = at.parent_path()) {
    if (!fs::exists(at / kManifestName, error)) continue;
    throw Error::output(fmt::format("{}: lies inside the blob {}", path.string(), at.string()))
        .hint("choose another directory");
  }
}

// The files in `directory` and its folders; not all of them if there are many, which this program
// does not write.
std::set<FileIdentity> identities_in(const fs::path& directory) {
  constexpr size_t kMany = 100'000;
  std::set<FileIdentity> found;
  std::error_code error;
  for (fs::recursive_directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    if (const auto identity = identity_of(at->path())) found.insert(*identity);
    if (found.size() > kMany) break;
  }
  return found;
}

// A temporary file that shows whether two paths lead to one directory. A volume that is mounted
// twice, through FUSE or the network, has two device numbers, but a file made in one place appears
// in the other.
class Probe {
 public:
  explicit Probe(const fs::path& directory)
      : path_((directory / fmt::format(".{}.tmp-XXXXXX", kManifestName)).string()),
        descriptor_(mkostemp(path_.data(), O_CLOEXEC)) {}
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe() {
    if (descriptor_ < 0) return;  // the directory cannot be written to, so nothing in it is at risk
    close(descriptor_);
    unlink(path_.c_str());
  }

  // Whether `path` or one of the directories above it is the probe's directory.
  [[nodiscard]] bool is_seen_from(const fs::path& path) const {
    std::error_code error;
    fs::path at = fs::weakly_canonical(path, error);
    if (error || descriptor_ < 0) return false;
    const fs::path name = fs::path(path_).filename();
    for (; !at.empty(); at = at.parent_path()) {
      if (identity_of(at / name)) return true;
      if (at == at.parent_path()) break;
    }
    return false;
  }

 private:
  std::string path_;
  int descriptor_;
};

}  // namespace

void refuse_inputs_in(const fs::path& output, const std::vector<fs::path>& inputs) {
  std::error_code ignored;
  if (!fs::exists(output, ignored)) return;
  std::set<FileIdentity> there = identities_in(output);
  for (const fs::path& folder : Replacement::folders(output)) there.merge(identities_in(folder));
  if (there.empty()) return;  // no file can be lost
  const Probe probe(output);
  for (const fs::path& input : inputs) {
    const auto identity = identity_of(input);
    // An input that is a link may lie in `output` though its content does not: its parent is
    // compared.
    const bool inside = lies_in(input, output) || lies_in(input.parent_path() / ".", output);
    const bool found = inside || (identity && there.contains(*identity)) ||
                       probe.is_seen_from(input) || probe.is_seen_from(input.parent_path() / ".");
    if (!found) continue;
    throw Error::output(fmt::format("{}: holds the input {}", output.string(), input.string()))
        .hint("choose another directory");
  }
}

void refuse_blob_folder_in(const fs::path& checkpoint, const fs::path& output) {
  std::error_code ignored;
  const bool whole = fs::is_directory(checkpoint, ignored);
  const fs::path directory =
      fs::weakly_canonical(whole ? checkpoint : checkpoint.parent_path() / ".", ignored);
  // OUT may be a link: what counts is where it lies, and where it leads.
  const fs::path given = (fs::absolute(output, ignored) / "").lexically_normal().parent_path();
  for (const fs::path& place :
       {fs::weakly_canonical(given.parent_path(), ignored) / given.filename(),
        fs::weakly_canonical(given, ignored)}) {
    const fs::path below = place.lexically_relative(directory / "").lexically_normal();
    const std::string name = below.empty() ? "" : below.begin()->string();
    if (name != kBlobFolder && !is_rank_directory(name)) continue;
    throw Error::usage(fmt::format("--output: {}: {} in the checkpoint's directory would make that "
                                   "directory a blob",
                                   output.string(), name))
        .hint("choose another name");
  }
}

OutputDirectory::OutputDirectory(fs::path path, OutputMode mode, bool shared,
                                 const std::function<void()>& between, bool look_only)
    : path_(std::move(path)), look_only_(look_only) {
  refuse_inside_blob(path_);
  try {
    if (!look_only_) Replacement::recover(path_);
    existed_ = fs::exists(path_);
    if (existed_ && !fs::is_directory(path_)) {
      throw Error::output(fmt::format("{}: exists and is not a directory", path_.string()));
    }
    if (look_only_ && !existed_) {
      existed_ = true;  // so that nothing is removed
      return;
    }
    lock(shared);
    open(mode, between);
  } catch (const fs::filesystem_error& error) {
    close(std::exchange(descriptor_, -1));
    throw Error::output(fmt::format("{}: {}", path_.string(), error.code().message()));
  } catch (...) {
    close(std::exchange(descriptor_, -1));  // no destructor runs after a throw from here
    throw;
  }
}

OutputDirectory::~OutputDirectory() {
  replacement_.reset();
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
      // The file system has no locks for directories; atomic renames still keep every file whole.
      if (errno != EWOULDBLOCK) return;
      close(std::exchange(descriptor_, -1));
      throw Error::output(fmt::format("{}: another process is writing here", path_.string()));
    }
    // The process that held the lock before may have removed the directory that we opened and
    // locked.
  } while (!is_same_directory(descriptor_, path_));
}

void OutputDirectory::open(OutputMode mode, const std::function<void()>& between) {
  if (fs::is_empty(path_)) return;
  switch (mode) {
    case OutputMode::kNew:
      throw Error::output(fmt::format("{}: exists and is not empty", path_.string()))
          .hint("--force replaces an earlier result");
    case OutputMode::kReplace: {
      OwnFiles old = find_own_files(path_, Evidence::kContent, between);
      refuse_foreign(path_, old);
      would_replace_ = true;
      if (!look_only_) replacement_.emplace(path_, std::move(old));
      return;
    }
    case OutputMode::kJoin:
      (void)files();
      return;
  }
}

bool OutputDirectory::resume_replacement() {
  if (auto found = Replacement::interrupted(path_)) replacement_.emplace(std::move(*found));
  return replaces();
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
  std::error_code ignored;
  if (look_only_ && !fs::exists(home(), ignored)) return {};
  OwnFiles own = find_own_files(home(), Evidence::kName);
  // find_own_files reads records before it lists files. In between, another shard may write its
  // record and then a file that only this record explains. So a foreign file is looked at again.
  for (int look = 0; look < 3 && !own.foreign.empty(); ++look) {
    own = find_own_files(home(), Evidence::kName);
  }
  refuse_foreign(home(), own);
  std::vector<fs::path> files;
  for (const OwnFile& file : own.files) files.push_back(file.path);
  return files;
}

void OutputDirectory::discard() const noexcept {
  try {
    remove_own_files(home(), find_own_files(home(), Evidence::kContent));
  } catch (const std::exception&) {
    // The user has to know why the run failed, not that cleaning up failed, too.
  }
}

std::optional<int64_t> OutputDirectory::free_bytes() const {
  std::error_code error;
  const fs::space_info space = fs::space(existing_above(home()), error);
  if (error) return std::nullopt;
  return static_cast<int64_t>(std::min<uintmax_t>(space.available, INT64_MAX));
}

void OutputDirectory::require_writable() const {
  const fs::path place = existing_above(path_);
  if (access((place / ".").c_str(), W_OK | X_OK) == 0) return;
  const int code = errno;
  throw Error::output(
      fmt::format("{}: cannot write here: {}", place.string(), std::strerror(code)));
}

void OutputDirectory::reserve(int64_t bytes) const {
  const std::optional<int64_t> available = free_bytes();
  if (!available || *available >= bytes) return;  // if it is not known, writing will fail
  if (!replaces() && !would_replace_) {
    throw Error::output(fmt::format("{}: needs up to {} bytes, the file system has {} free",
                                    path_.string(), bytes, *available));
  }
  throw Error::output(
      fmt::format(
          "{}: needs up to {} bytes beside the old result, which stays until the new one is "
          "complete; the file system has {} free",
          path_.string(), bytes, *available))
      .hint("remove the old result first, or choose a directory on another file system");
}

}  // namespace mxfp4
