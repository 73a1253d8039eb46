#include "formats/output/replacement.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "formats/blob/journal.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/os/atomic_file.hpp"
#include "formats/os/directory.hpp"
#include "formats/os/exchange.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxName = 255;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

// The absolute path to which `path` leads through its links, whether or not it exists.
fs::path without_links(fs::path path) {
  std::error_code error;
  constexpr int kMaxLinks = 40;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(path, error); ++i) {
    path = path.parent_path() / fs::read_symlink(path, error);
  }
  const fs::path whole = fs::weakly_canonical(path, error);
  return error ? fs::absolute(path, error) : whole;
}

// The journal of the run that writes into a new directory.
BegunReplacement begun_in(const fs::path& folder) {
  const std::string name = fmt::format("{}progress", kJournalPrefix);
  JournalContent journal = read_journal(folder / name);
  if (journal.bytes > 0) return {std::move(journal), folder};
  return {read_journal(folder / kBlobFolder / name), folder / kBlobFolder};
}

JournalContent journal_in(const fs::path& folder) { return begun_in(folder).journal; }

// Tries to take a lock, and holds it as long as this object lives.
class TriedLock {
 public:
  explicit TriedLock(const fs::path& folder)
      : descriptor_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {
    taken_ =
        descriptor_ >= 0 && (flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK);
  }
  TriedLock(const TriedLock&) = delete;
  TriedLock& operator=(const TriedLock&) = delete;
  ~TriedLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] bool taken() const { return taken_; }

 private:
  int descriptor_;
  bool taken_ = false;
};

// Makes a directory with the owner and mode of OUT, which it will replace. False if that fails.
bool make_alike(const fs::path& fresh, const fs::path& out) {
  struct stat old {};
  struct stat made {};
  if (stat(out.c_str(), &old) != 0 || mkdir(fresh.c_str(), 0777) != 0) return false;
  if (stat(fresh.c_str(), &made) == 0 && (made.st_uid != old.st_uid || made.st_gid != old.st_gid)) {
    (void)lchown(fresh.c_str(), old.st_uid, old.st_gid);
  }
  (void)chmod(fresh.c_str(), old.st_mode & 07777);
  if (stat(fresh.c_str(), &made) == 0 && made.st_dev == old.st_dev && made.st_uid == old.st_uid &&
      made.st_gid == old.st_gid && made.st_mode == old.st_mode) {
    return true;
  }
  rmdir(fresh.c_str());
  return false;
}

// Whether OUT can take another name.
bool can_be_renamed(const fs::path& out) {
  const fs::path parent = out.parent_path();
  struct stat above {};
  struct stat here {};
  if (stat(parent.c_str(), &above) != 0 || stat(out.c_str(), &here) != 0) return false;
  const uid_t user = geteuid();
  const bool restricted =
      (above.st_mode & S_ISVTX) != 0 && user != 0 && above.st_uid != user && here.st_uid != user;
  return !restricted && !is_mount_point(out) && identity_of(".") != identity_of(out) &&
         access(parent.c_str(), W_OK | X_OK) == 0;
}

// The entries of a folder, a manifest first, a journal last; without the folders of a replacement.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (const fs::directory_entry& entry : list_directory(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kStagingPrefix)) entries.push_back(entry.path());
  }
  if (error) {
    throw Error::output(fmt::format("{}: cannot be listed: {}", folder.string(), error.message()));
  }
  std::ranges::stable_sort(entries, {}, [](const fs::path& path) {
    const std::string name = path.filename().string();
    return name == kManifestName ? 0 : name.starts_with(kJournalPrefix) ? 2 : 1;
  });
  return entries;
}

}  // namespace

Replacement::Places Replacement::beside(const fs::path& out) {
  const auto named = [&](std::string_view what) {
    return out.parent_path() / fmt::format(".{}.mxfp4_repack-{}", out.filename().string(), what);
  };
  return {out, named("new"), named("old"), {}};
}

std::vector<fs::path> Replacement::folders(const fs::path& path) {
  const Places places = beside(without_links(path));
  return {places.fresh, places.old};
}

Replacement::Places Replacement::inside(const fs::path& out) {
  const auto named = [&](std::string_view what) {
    return out / fmt::format("{}{}", kStagingPrefix, what);
  };
  return {out, named("new"), named("old"), named("in")};
}

Replacement::Replacement(const fs::path& path, OwnFiles old) : old_(std::move(old)) {
  const fs::path out = without_links(path);
  const Places outer = beside(out);
  const Places inner = inside(out);
  for (const Places& places : {outer, inner}) {
    if (places.old.filename().string().size() > kMaxName) continue;
    remove_leftover(places.old);
    remove_leftover(places.fresh);
  }
  places_ = outer;
  if (outer.old.filename().string().size() > kMaxName || !can_be_renamed(out) ||
      !make_alike(outer.fresh, out)) {
    places_ = inner;
    if (mkdir(inner.fresh.c_str(), 0777) != 0) {
      throw Error::output(
          fmt::format("{}: cannot create: {}", inner.fresh.string(), std::strerror(errno)));
    }
  }
  lock();
}

Replacement::Replacement(Places places, OwnFiles old)
    : places_(std::move(places)), old_(std::move(old)) {
  lock();
}

Replacement::Replacement(Replacement&& other) noexcept
    : places_(std::move(other.places_)),
      old_(std::move(other.old_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

Replacement::~Replacement() {
  if (descriptor_ < 0) return;
  if (!places_.fresh.empty()) remove_if_empty(places_.fresh);
  close(descriptor_);
}

std::optional<BegunReplacement> Replacement::begun(const fs::path& path) {
  const fs::path out = without_links(path);
  for (const Places& places : {beside(out), inside(out)}) {
    if (!is_folder(places.fresh)) continue;
    BegunReplacement found = begun_in(places.fresh);
    if (found.journal.bytes > 0) return found;
  }
  return std::nullopt;
}

std::optional<Replacement> Replacement::interrupted(const fs::path& path) {
  const fs::path out = without_links(path);
  for (const Places& places : {beside(out), inside(out)}) {
    if (!is_folder(places.fresh) || journal_in(places.fresh).bytes == 0) continue;
    OwnFiles old = find_own_files(out, Evidence::kContent);
    refuse_foreign(path, old);
    return Replacement(places, std::move(old));
  }
  return std::nullopt;
}

// Locks the new directory; after the exchange, that lock is OUT's.
void Replacement::lock() {
  descriptor_ = open(places_.fresh.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  const bool taken = descriptor_ >= 0 &&
                     (flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) &&
                     is_folder(places_.fresh);
  if (taken) return;
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  throw Error::output(fmt::format("{}: another process is writing here", places_.out.string()));
}

void Replacement::remove_leftover(const fs::path& folder) {
  if (!is_folder(folder)) {
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(folder, ignored))) return;
    throw Error::output(fmt::format("{}: is in the way, and is not a directory", folder.string()));
  }
  if (!TriedLock(folder).taken()) {
    throw Error::output(fmt::format("{}: another process is writing here", folder.string()));
  }
  const OwnFiles own = find_own_files(folder, Evidence::kContent);
  refuse_foreign(folder, own);
  remove_own_files(folder, own);
  remove_file(folder);
}

void Replacement::check_old() const {
  std::map<fs::path, FileState> known;
  for (const OwnFile& file : old_.files) known[file.path] = file.state;
  const OwnFiles now = find_own_files(places_.out, Evidence::kName);
  const auto fail = [&](const fs::path& path) {
    throw Error::output(fmt::format("{}: {} changed or appeared while the new result was made",
                                    places_.out.string(), path.string()))
        .hint("take it away; --resume then puts the new result in the place of the old one");
  };
  if (!now.foreign.empty()) fail(std::ranges::min(now.foreign));
  for (const OwnFile& file : now.files) {
    const auto found = known.find(file.path);
    if (found == known.end() || found->second != file.state) fail(file.path);
  }
}

std::string Replacement::exchange() {
  if (places_.arriving.empty()) {
    if (exchange_names(places_.fresh, places_.out)) {
      rename_to(places_.fresh, places_.old);
    } else {
      rename_to(places_.out, places_.old);
      try {
        rename_to(places_.fresh, places_.out);
      } catch (const Error&) {
        rename_to(places_.old, places_.out);
        throw;
      }
    }
    sync_directory(places_.out.parent_path());
  } else {
    move_out(places_);
    move_in(places_);
  }
  places_.fresh.clear();
  try {
    return remove_old();
  } catch (const Error& error) {
    return fmt::format("{}: the old result, or a part of it, remains: {}", places_.old.string(),
                       error.what());
  }
}

std::string Replacement::remove_old() {
  remove_own_files(places_.old, old_);
  for (const fs::path& entry : entries_of(places_.old)) {
    const fs::path back = places_.out / entry.filename();
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(back, ignored))) rename_to(entry, back);
  }
  if (rmdir(places_.old.c_str()) == 0) return "";
  return fmt::format("{}: holds what this program did not write, and remains",
                     places_.old.string());
}

void Replacement::recover(const fs::path& path) {
  const fs::path out = without_links(path);
  recover_beside(beside(out));
  recover_inside(inside(out));
}

void Replacement::recover_beside(const Places& places) {
  const bool fresh = is_folder(places.fresh);
  const bool old = is_folder(places.old);
  std::error_code ignored;
  const bool out = fs::exists(fs::symlink_status(places.out, ignored));
  if (!fresh && (out || !old)) return;
  if (!TriedLock(fresh ? places.fresh : places.old).taken()) {
    if (out) return;  // whoever locks OUT later reports the other process
    throw Error::output(fmt::format("{}: another process is writing here", places.out.string()));
  }
  if (out) {
    // `fresh` holds the old result if the names were exchanged, which the journals show.
    const bool exchanged = journal_in(places.out).ready || journal_in(places.fresh).bytes == 0;
    if (!old && exchanged) rename_to(places.fresh, places.old);
  } else if (fresh && old && journal_in(places.fresh).ready) {
    rename_to(places.fresh, places.out);
  } else if (old) {
    rename_to(places.old, places.out);
  }
}

void Replacement::recover_inside(const Places& places) {
  const bool arriving = is_folder(places.arriving);
  if (!arriving && !(is_folder(places.old) && is_folder(places.fresh))) return;
  if (!TriedLock(places.out).taken()) return;  // whoever locks OUT later reports the other process
  if (!arriving) {
    if (!journal_in(places.fresh).ready) return;
    move_out(places);
  }
  move_in(places);
}

void Replacement::move_out(const Places& places) {
  if (mkdir(places.old.c_str(), 0777) != 0 && errno != EEXIST) {
    throw Error::output(
        fmt::format("{}: cannot create: {}", places.old.string(), std::strerror(errno)));
  }
  try {
    for (const fs::path& entry : entries_of(places.out)) {
      rename_to(entry, places.old / entry.filename());
    }
    rename_to(places.fresh, places.arriving);
  } catch (const Error&) {
    // Moving may fail, for example for a folder without write permission. Move everything back; the
    // manifest, which was moved first, returns last.
    std::vector<fs::path> moved = entries_of(places.old);
    std::ranges::reverse(moved);
    for (const fs::path& entry : moved) rename_to(entry, places.out / entry.filename());
    rmdir(places.old.c_str());
    throw;
  }
  sync_directory(places.out);
}

// Moves the manifest last. A file that has one of the names meanwhile is not ours: it is moved
// aside.
void Replacement::move_in(const Places& places) {
  std::vector<fs::path> entries = entries_of(places.arriving);
  std::ranges::reverse(entries);
  for (const fs::path& entry : entries) {
    const fs::path target = places.out / entry.filename();
    std::error_code ignored;
    if (fs::exists(fs::symlink_status(target, ignored))) {
      rename_to(target, places.old / target.filename());
    }
    rename_to(entry, target);
  }
  sync_directory(places.out);
  remove_file(places.arriving);
  sync_directory(places.out);
}

}  // namespace mxfp4
