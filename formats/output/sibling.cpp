#include "formats/output/sibling.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/journal.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/output/foreign.hpp"
#include "formats/remote/files_at.hpp"
#include "lib/core/error.hpp"
#include "lib/core/human_bytes.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// The result's folder, from when it is removed on.
constexpr const char* kRemovedFolder = "removed";

// Two folders that are exchanged to see whether that works.
constexpr std::array<const char*, 2> kProbes{"probe-1", "probe-2"};

// "packed" for "packed/": paths below it are compared by their parts.
fs::path without_slash(fs::path path) {
  if (path.has_relative_path() && !path.has_filename()) path = path.parent_path();
  return path;
}

// The path under which OUT's parent has it: a link is followed, and "." has a name.
fs::path entry_of(const fs::path& out) {
  std::error_code error;
  if (is_address(out)) {
    const fs::path place = fs::temp_directory_path(error);
    if (error) throw Error::output("TMPDIR: " + error.message());
    return place / ("mxfp4_repack-" + checksum_of(out.string()));
  }
  const fs::path name = out.filename();
  if (!name.empty() && name != "." && name != ".." && !fs::is_symlink(out, error)) return out;
  fs::path path = out;
  constexpr int kMaxLinks = 40;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(path, error); ++i) {
    path = path.parent_path() / fs::read_symlink(path, error);
  }
  fs::path whole = fs::weakly_canonical(path, error);
  if (error) whole = fs::absolute(path, error);
  return without_slash(whole.lexically_normal());
}

fs::path parent_of(const fs::path& entry) {
  return entry.has_parent_path() ? entry.parent_path() : fs::path(".");
}

std::string name_beside(const fs::path& entry) {
  return fmt::format(".{}.mxfp4_repack-new", entry.filename().string());
}

// The path itself, or the nearest directory above it that exists.
fs::path existing_above(const fs::path& path) {
  std::error_code error;
  fs::path at = without_slash(fs::absolute(path, error).lexically_normal());
  while (!fs::exists(at, error) && at != at.parent_path()) at = at.parent_path();
  return at;
}

// What is written inside a result would be foreign to that result's own --resume and --force.
void refuse_inside_blob(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(path, error);
  for (fs::path at = whole.parent_path(); at != at.parent_path(); at = at.parent_path()) {
    const bool blob = fs::exists(at / kManifestName, error) ||
                      std::ranges::any_of(list_directory(at, error), [&](const auto& entry) {
                        return is_rank_directory(entry.path().filename().string()) &&
                               fs::exists(entry.path() / kManifestName, error);
                      });
    if (!blob) continue;
    throw Error::output(fmt::format("lies inside the blob {}", at.string()))
        .in_file(path.string())
        .hint("choose another directory");
  }
}

[[noreturn]] void refuse_busy(const fs::path& out) {
  throw Error::output("another process is writing here").in_file(out.string());
}

[[noreturn]] void refuse_exchange(const fs::path& out, std::string_view why) {
  throw Error::output(fmt::format("cannot be replaced: {}", why))
      .in_file(out.string())
      .hint("name a directory in it, or another one, or remove the old result first");
}

// Gives a new directory, which no other user can enter yet, the owner and mode of OUT.
bool become_alike(const Directory& fresh, const struct stat& old) {
  // Nobody gets the rights of a set-user-ID bit, which means nothing on a directory.
  constexpr mode_t kTaken = S_ISGID | S_ISVTX | 0777;
  struct stat made {};
  if (fstat(fresh.descriptor(), &made) != 0) return false;
  if (made.st_gid != old.st_gid || made.st_uid != old.st_uid) {
    (void)!fchown(fresh.descriptor(), old.st_uid, old.st_gid);
  }
  (void)fchmod(fresh.descriptor(), old.st_mode & kTaken);
  return fstat(fresh.descriptor(), &made) == 0 && made.st_uid == old.st_uid &&
         made.st_gid == old.st_gid && (made.st_mode & kTaken) == (old.st_mode & kTaken);
}

// Moves what is in `from` into `to`. Indexes come last, and manifests behind them.
void move_into(const Directory& from, const Directory& to) {
  std::vector<std::string> names = from.names();
  std::ranges::sort(names, {}, [](const std::string& name) {
    return std::pair(name == kManifestName ? 2 : name == kIndexName ? 1 : 0, name);
  });
  for (const std::string& name : names) {
    const auto folder = from.find(name);
    const auto there = folder ? to.find(name) : std::nullopt;
    if (name == kManifestName) to.sync();  // the files that it names come before it
    if (there) {
      move_into(*folder, *there);
    } else {
      from.rename(name, to, name);
    }
  }
  to.sync();
  from.sync();  // a rename may need both to be durable
}

void remove_content(const Directory& directory) {
  for (const std::string& name : directory.names()) {
    const auto folder = directory.find(name);
    if (folder) remove_content(*folder);
    if (!folder || !directory.remove_folder(name)) directory.remove(name);
  }
}

// Of killed runs. No other file has such a name.
void remove_temporaries(const Directory& directory) {
  for (const std::string& name : directory.names()) {
    if (const auto folder = directory.find(name)) {
      remove_temporaries(*folder);
    } else if (name.starts_with('.')) {
      directory.remove(name);
    }
  }
}

// Whether a directory was OUT: manifests are written last. Else a run was cut off while it built it.
bool was_complete(const fs::path& directory) {
  return std::ranges::any_of(find_blobs(directory),
                             [](const fs::path& blob) { return exists_at(blob / kManifestName); });
}

}  // namespace

fs::path sibling_of(const fs::path& out) {
  if (is_address(out)) return without_slash(out);
  const fs::path entry = entry_of(without_slash(out));
  return parent_of(entry) / name_beside(entry);
}

Sibling::Sibling(fs::path out, bool shared) : out_(without_slash(std::move(out))), shared_(shared) {
  const fs::path entry = entry_of(out_);
  parent_ = parent_of(entry);
  name_ = entry.filename().string();
  sibling_ = name_beside(entry);
  refuse_inside_blob(out_);
  std::error_code error;
  if (fs::exists(out_, error) && !fs::is_directory(out_, error)) {
    throw Error::output("exists and is not a directory").in_file(out_.string());
  }
  lock_if_there();
}

Sibling::~Sibling() {
  if (keep_ || !made_it_ || !place_) return;
  // Only if no other shard is at work.
  if (flock(place_->descriptor(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return;
  try {
    remove(/*replaced=*/false);
  } catch (const std::exception&) {
    // What made the run fail is what the user has to know.
  }
}

bool Sibling::occupied() const {
  if (is_address(out_)) {
    return is_listed_at(out_ / kFarJournal) ? was_complete(out_) : is_listed_at(out_);
  }
  std::error_code error;
  const bool there = fs::exists(out_, error);
  const bool empty = !there || fs::is_empty(out_, error);
  if (error && error != std::errc::no_such_file_or_directory) {
    throw Error::output(error.message()).in_file(out_.string());
  }
  return !empty;
}

void Sibling::open(bool create) {
  constexpr int kTries = 1000;
  holder_.emplace(parent_);
  const fs::path path = parent_ / sibling_;
  for (int tries = 0; tries < kTries; ++tries) {
    if (create && holder_->create(sibling_, 0777)) {
      made_it_ = true;
      holder_->sync();
    } else if (create && errno != EEXIST) {
      throw Error::output(fmt::format("cannot create: {}", std::strerror(errno)))
          .in_file(path.string());
    }
    std::optional<Directory> found = holder_->find(sibling_);
    if (!found && !holder_->entry(sibling_)) {
      if (create) continue;
      return;
    }
    struct stat status {};
    struct stat old {};
    if (!found || fstat(found->descriptor(), &status) != 0) {
      throw Error::output("is in the way, and cannot be used").in_file(path.string());
    }
    const bool owned = status.st_uid == geteuid() ||
                       (stat(out_.c_str(), &old) == 0 && old.st_uid == status.st_uid);
    if (!owned) {
      throw Error::output("is in the way, and is another user's").in_file(path.string());
    }
    // Where the file system has no locks for directories, those of the journals are left.
    const int how = (shared_ ? LOCK_SH : LOCK_EX) | LOCK_NB;
    if (flock(found->descriptor(), how) != 0 && errno == EWOULDBLOCK) {
      made_it_ = false;
      refuse_busy(out_);
    }
    // The process that held the lock before may have removed what we opened.
    if (!holder_->holds(sibling_, *found)) continue;
    place_ = std::move(found);
    return;
  }
  refuse_busy(out_);
}

void Sibling::lock_if_there() {
  std::error_code error;
  if (!place_ && fs::is_directory(parent_, error)) open(/*create=*/false);
}

void Sibling::make() {
  if (name_.empty()) refuse_exchange(out_, "it has no name in a directory above it");
  const fs::path above = existing_above(parent_);
  (void)Directory(above).folder(fs::absolute(parent_).lexically_normal().lexically_relative(above));
  if (!place_) open(/*create=*/true);
  result_ = place_->find(kResultFolder);
  if (result_) return;
  struct stat old {};
  const bool exists = stat(out_.c_str(), &old) == 0;
  const fs::path path = place_->path() / kResultFolder;
  if (!place_->create(kResultFolder, exists ? 0700 : 0777) && errno != EEXIST) {
    throw Error::output(fmt::format("cannot create: {}", std::strerror(errno)))
        .in_file(path.string());
  }
  place_->sync();
  result_.emplace(path, /*follow=*/false);
  if (exists && !become_alike(*result_, old)) {
    refuse_exchange(out_, "no new directory beside it can have its owner and mode");
  }
}

void Sibling::require_exchange() const {
  if (!holder_->entry(name_)) return;
  if (identity_of(".") == identity_of(out_)) {
    refuse_exchange(out_, "the current directory keeps its name");
  }
  // A directory cannot take the name of one that is not empty, and an answer other than that tells
  // why it could not take any name: a mount point, a directory of an image's lower layer, the owner
  // of a sticky parent.
  const int in = holder_->descriptor();
  int code = renameat(in, name_.c_str(), in, sibling_.c_str()) == 0 ? EBUSY : errno;
  bool can = code == ENOTEMPTY || code == EEXIST;
  if (can && occupied()) {
    const auto& [one, two] = kProbes;
    can = place_->create(one, 0700) && place_->create(two, 0700) &&
          place_->exchange(one, *place_, two);
    code = errno;
    can = place_->remove_folder(one) && place_->remove_folder(two) && can;
  }
  if (!can) {
    refuse_exchange(out_, fmt::format("two names cannot be exchanged: {}", std::strerror(code)));
  }
}

std::string Sibling::publish(Into into) {
  if (!holder_->holds(sibling_, *place_)) {
    throw Error::output("another directory has got its name")
        .in_file((parent_ / sibling_).string());
  }
  remove_temporaries(*result_);
  if (into == Into::kRanks) {
    move_into(*result_, Directory(out_));
  } else if (into == Into::kFree) {
    place_->rename(kResultFolder, *holder_, name_);
  } else if (!place_->exchange(kResultFolder, *holder_, name_)) {
    refuse_exchange(out_, std::strerror(errno));
  }
  // The new result is OUT: what fails from here on is only said.
  keep_ = true;
  try {
    place_->sync();
    holder_->sync();
    remove(/*replaced=*/into == Into::kOther);
  } catch (const Error& error) {
    return fmt::format("the new result is in place, but: {}", error.what());
  } catch (const std::bad_alloc&) {
    return "the new result is in place, but: out of memory";
  }
  return "";
}

void Sibling::clear(bool replaced) {
  if (place_->entry(kResultFolder)) {
    const fs::path result = place_->path() / kResultFolder;
    if (replaced && was_complete(result)) refuse_foreign(result);
    // Without its folder, the result is nobody's if this process is killed now.
    if (const auto before = place_->find(kRemovedFolder)) remove_content(*before);
    place_->rename(kResultFolder, *place_, kRemovedFolder);
    place_->sync();
  }
  remove_content(*place_);
  made_it_ = true;
  result_.reset();
}

void Sibling::remove(bool replaced) {
  clear(replaced);
  if (!holder_->remove_folder(sibling_)) {
    throw Error::output(fmt::format("cannot remove: {}", std::strerror(errno)))
        .in_file(place_->path().string());
  }
  made_it_ = false;
  place_.reset();
}

std::optional<int64_t> Sibling::free_bytes() const {
  std::error_code error;
  const fs::space_info space = fs::space(existing_above(parent_), error);
  if (error) return std::nullopt;
  return static_cast<int64_t>(std::min<uintmax_t>(space.available, INT64_MAX));
}

void Sibling::require_writable() const {
  const fs::path at = existing_above(parent_);
  if (access((at / ".").c_str(), W_OK | X_OK) == 0) return;
  throw Error::output(fmt::format("cannot write here: {}", std::strerror(errno)))
      .in_file(at.string());
}

void Sibling::reserve(int64_t bytes) const {
  if (is_address(out_)) return;  // a file leaves before the next but one comes
  const std::optional<int64_t> available = free_bytes();
  if (!available || *available >= bytes) return;  // if it is not known, writing will fail
  throw Error::output(fmt::format("needs up to {}{}, the file system has {} free",
                                  human_bytes(bytes),
                                  occupied() ? " beside what is there until it is complete" : "",
                                  human_bytes(*available)))
      .in_file(out_.string())
      .hint("choose a directory on another file system");
}

}  // namespace mxfp4
