#include "formats/output/replacement.hpp"

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
#include <map>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

using Places = ReplacementPlaces;

constexpr size_t kMaxName = 255;
// Two folders that are exchanged to see whether that works.
constexpr std::array<const char*, 2> kProbes{".mxfp4_repack-1", ".mxfp4_repack-2"};

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

std::string name_beside(const std::string& out, std::string_view what) {
  return fmt::format(".{}.mxfp4_repack-{}", out, what);
}

JournalContent journal_in(const Directory& folder) { return find_run(folder.path(), {}).journal; }

// Whether a folder of a replacement was made by this user, or for the owner of OUT.
bool is_of_this_user(const Directory& folder, const Directory& out) {
  struct stat found {};
  struct stat old {};
  return fstat(folder.descriptor(), &found) == 0 && fstat(out.descriptor(), &old) == 0 &&
         (found.st_uid == geteuid() || found.st_uid == old.st_uid);
}

// Locks an open directory, until its last copy is closed. True also where there are no such locks.
bool try_lock(const Directory& folder) {
  return flock(folder.descriptor(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

// Locks it, or throws that another process holds it.
void require_lock(const Directory& folder, const fs::path& path) {
  if (try_lock(folder)) return;
  throw another_process_writes(path);
}

// Gives a new directory, which no other user can enter yet, the owner and mode of OUT.
bool become_alike(const Directory& fresh, const Directory& out) {
  // Nobody gets the rights of a set-user-ID bit, which means nothing on a directory.
  constexpr mode_t kTaken = S_ISGID | S_ISVTX | 0777;
  struct stat old {};
  struct stat made {};
  if (fstat(out.descriptor(), &old) != 0 || !is_of_this_user(fresh, out)) return false;
  if (fstat(fresh.descriptor(), &made) != 0) return false;
  if (made.st_gid != old.st_gid || made.st_uid != old.st_uid) {
    (void)!fchown(fresh.descriptor(), old.st_uid, old.st_gid);
  }
  (void)fchmod(fresh.descriptor(), old.st_mode & kTaken);
  return fstat(fresh.descriptor(), &made) == 0 && made.st_dev == old.st_dev &&
         made.st_uid == old.st_uid && made.st_gid == old.st_gid &&
         (made.st_mode & kTaken) == (old.st_mode & kTaken);
}

// Only while OUT is an entry of that parent.
std::optional<Places> places_beside(const Directory& out) {
  const fs::path whole = without_links(out.path());
  const std::string name = whole.filename().string();
  if (name.empty() || name_beside(name, "new").size() > kMaxName) return std::nullopt;
  try {
    Places places{Directory(whole.parent_path()), name, name_beside(name, "new"),
                  name_beside(name, "old")};
    if (places.holder.holds(name, out)) return places;
  } catch (const Error&) {
    // A parent that cannot be entered cannot be written to either.
  }
  return std::nullopt;
}

[[noreturn]] void refuse_exchange(const Directory& out, const std::string& why) {
  throw Error::output(fmt::format("cannot be replaced: {}", why))
      .in_file(out.path().string())
      .hint("choose another directory, or remove the old result first");
}

// Throws unless OUT can change names with a directory beside it. The kernel is asked, before any
// work: a directory cannot take the name of one that is not empty, and an answer other than that
// tells why it could not take any name (a mount point, a directory of an image's lower layer, the
// owner of a sticky parent). Then two new folders change names.
void require_exchange(const Directory& out, const Places& places, const Directory& fresh) {
  const auto& [one, two] = kProbes;
  const int in = places.holder.descriptor();
  bool can = fresh.create(one, 0700) && fresh.create(two, 0700);
  int code = errno;
  if (can && renameat(in, places.out.c_str(), in, places.fresh.c_str()) == 0) {
    // Somebody put an empty directory there.
    (void)renameat(in, places.fresh.c_str(), in, places.out.c_str());
    can = false;
    code = EBUSY;
  } else if (can) {
    code = errno;
    can = code == ENOTEMPTY || code == EEXIST;
  }
  try {
    if (can && !fresh.exchange(one, two)) {
      can = false;
      code = ENOTSUP;
    }
  } catch (const Error&) {
    can = false;
    code = EIO;
  }
  can = fresh.remove_folder(one) && fresh.remove_folder(two) && can;
  if (!can) refuse_exchange(out, fmt::format("two names cannot be exchanged: {}", strerror(code)));
}

// The new directory beside OUT, which can take OUT's name.
Directory make_beside(const Directory& out, const Places& places) {
  const auto current = identity_of(".");
  const std::optional<FileState> here = out.state(".");
  if (!here || !current || *current == here->identity) {
    refuse_exchange(out, "the current directory keeps its name");
  }
  if (!places.holder.create(places.fresh, 0700)) {
    throw Error::output(fmt::format("cannot create: {}", std::strerror(errno)))
        .in_file((places.holder.path() / places.fresh).string());
  }
  std::optional<Directory> fresh = places.holder.find(places.fresh);
  try {
    if (!fresh || !become_alike(*fresh, out)) {
      refuse_exchange(out, "no new directory beside it can have its owner and mode");
    }
    require_exchange(out, places, *fresh);
    return *fresh;
  } catch (const Error&) {
    if (fresh) fresh->remove_empty_folders();
    for (int again = 0; again < 2 && !places.holder.remove_folder(places.fresh); ++again) {
    }
    throw;
  }
}

Places require_beside(const Directory& out) {
  std::optional<Places> places = places_beside(out);
  if (!places) refuse_exchange(out, "it has no name in a directory above it");
  return *std::move(places);
}

void remove_leftover(const Directory& out, const Directory& holder, const std::string& name) {
  if (!holder.state(name)) return;
  const fs::path path = holder.path() / name;
  const auto folder = holder.find(name);
  if (!folder || !is_of_this_user(*folder, out)) {
    throw Error::output(folder ? "is in the way, and is another user's"
                               : "is in the way, and is not a directory")
        .in_file(path.string());
  }
  require_lock(*folder, path);
  for (const char* probe : kProbes) (void)folder->remove_folder(probe);  // of a killed run
  const OwnFiles own = require_own_files(path, Evidence::kContent);
  remove_own_files(*folder, own);
  folder->remove_empty_folders();
  if (holder.remove_folder(name)) return;
  throw Error::output(fmt::format("cannot remove: {}", std::strerror(errno)))
      .in_file(path.string());
}

// A kill after the exchange leaves the old result in the new directory's place, which the journals
// show. Any other directory of that name is left as it is.
void recover_beside(const Directory& out, const Places& places) {
  const auto fresh = places.holder.find(places.fresh);
  if (!fresh || places.holder.state(places.old) || !is_of_this_user(*fresh, out)) return;
  if (!try_lock(*fresh)) return;  // whoever locks OUT later reports the other process
  const bool exchanged =
      journal_in(out).ready || (journal_in(*fresh).bytes == 0 &&
                                !find_own_files(fresh->path(), Evidence::kName).files.empty());
  if (exchanged) places.holder.rename(places.fresh, places.holder, places.old);
}

// Runs what is left to do behind the point of no return; says what failed.
template <class Body>
std::string noted(const Body& body) {
  try {
    body();
    return "";
  } catch (const Error& error) {
    return fmt::format("the new result is in place, but: {}", error.what());
  } catch (const std::bad_alloc&) {
    return "the new result is in place, but: out of memory";
  }
}

}  // namespace

Error another_process_writes(const fs::path& out) {
  return Error::output("another process is writing here").in_file(out.string());
}

std::vector<fs::path> Replacement::folders(const fs::path& path) {
  const fs::path out = without_links(path);
  const std::string name = out.filename().string();
  return {out.parent_path() / name_beside(name, "new"),
          out.parent_path() / name_beside(name, "old")};
}

Replacement::Replacement(const Directory& out, OwnFiles old)
    : out_(out), places_(require_beside(out)), old_(std::move(old)) {
  remove_leftover(out, places_.holder, places_.old);
  remove_leftover(out, places_.holder, places_.fresh);
  place_ = make_beside(out, places_);
  lock();
}

Replacement::Replacement(const Directory& out, OwnFiles old, BegunReplacement begun)
    : out_(out),
      places_(std::move(begun.places)),
      old_(std::move(old)),
      place_(std::move(begun.fresh)) {
  lock();
}

Replacement::~Replacement() {
  if (!place_ || exchanged_) return;
  place_->remove_empty_folders();
  (void)places_.holder.remove_folder(places_.fresh);
}

std::optional<BegunReplacement> Replacement::begun(const Directory& out) {
  std::optional<Places> places = places_beside(out);
  if (!places) return std::nullopt;
  const auto fresh = places->holder.find(places->fresh);
  if (!fresh || !is_of_this_user(*fresh, out)) return std::nullopt;
  BegunRun run = find_run(fresh->path(), {});
  if (run.journal.bytes == 0) return std::nullopt;
  return BegunReplacement{*std::move(places), *fresh, std::move(run)};
}

// Locks the new directory; after the exchange, that lock is OUT's.
void Replacement::lock() const { require_lock(*place_, out_.path()); }

void Replacement::check_old() const {
  std::map<fs::path, FileState> known;
  for (const OwnFile& file : old_.files) known[file.path] = file.state;
  const OwnFiles now = find_own_files(out_.path(), Evidence::kName);
  const auto fail = [&](const fs::path& path) {
    throw Error::output(
        fmt::format("{} changed or appeared while the new result was made", path.string()))
        .in_file(out_.path().string())
        .hint("take it away; --resume then puts the new result in the place of the old one");
  };
  if (!now.foreign.empty()) fail(std::ranges::min(now.foreign));
  for (const OwnFile& file : now.files) {
    const auto found = known.find(file.path);
    if (found == known.end() || found->second != file.state) fail(file.path);
  }
}

std::string Replacement::exchange() {
  const Directory& holder = places_.holder;
  if (!holder.holds(places_.out, out_) || !holder.holds(places_.fresh, *place_)) {
    throw Error::output("cannot be replaced: another directory has got its name")
        .in_file(out_.path().string());
  }
  Directory place = place_->named(out_.path());
  if (!holder.exchange(places_.fresh, places_.out)) {
    throw Error::output("cannot be replaced: the file system refuses to exchange two names now")
        .in_file(out_.path().string());
  }
  // The new result is OUT: what fails from here on is only said. The old one gets a name of its
  // own, which says what it is if this process is killed.
  exchanged_ = true;
  place_ = std::move(place);
  std::string name = places_.fresh;
  std::string note = noted([&] {
    holder.sync();
    holder.rename(places_.fresh, holder, places_.old);
    name = places_.old;
  });
  std::string failed = noted([&] { remove_own_files(out_, old_); });
  if (holder.remove_folder(name)) return "";
  if (!failed.empty()) return failed;
  if (!note.empty()) return note;
  return fmt::format("{}: the old result, or a part of it, remains: {}",
                     (holder.path() / name).string(), std::strerror(errno));
}

void Replacement::recover(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return;
  try {
    const Directory out(path);
    if (const auto places = places_beside(out)) recover_beside(out, *places);
  } catch (const Error& error) {
    if (error.file() != path.string()) throw;  // what cannot be opened is refused when it is locked
  }
}

}  // namespace mxfp4
