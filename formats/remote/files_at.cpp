#include "formats/remote/files_at.hpp"

#include <fmt/format.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "formats/checksum/checksum.hpp"
#include "formats/os/directory.hpp"
#include "formats/remote/far_folder.hpp"
#include "formats/remote/read_ahead.hpp"
#include "formats/remote/url.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

namespace fs = std::filesystem;

namespace {

// What is asked of a file first; a header of some hundred tensors fits.
constexpr int64_t kFrontBytes = int64_t{16} << 10;

// A plain server does not list its files: these are what a checkpoint or a blob begins with.
constexpr std::array kFirstFiles = {"config.json", "model.safetensors.index.json",
                                    "model.safetensors", "mxfp4_repack.json"};

// Without "/" at its end.
fs::path without_slashes(fs::path path) {
  while (path.native().ends_with('/')) path = path.native().substr(0, path.native().size() - 1);
  return path;
}

// The name of a file in a hub's cache, which costs nothing: a snapshot's files are links to
// blobs/NAME, and NAME of a large file is the SHA-256 of its bytes: of what was downloaded, as a
// program may have written through the link.
std::string cached_sha256(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  if (error || target.parent_path().filename() != "blobs") return "";
  return sha256_in(target.filename().string());
}

}  // namespace

// A file of a far folder.
struct FarEntry {
  std::shared_ptr<FarFile> file;
  fs::path cached{};  // not empty: it is in a hub's cache
  FarTicket front{};  // its first bytes; null: in the cache
};

class FarSession {
 public:
  // Its first bytes are asked for: when they are there, so is its size.
  [[nodiscard]] FarEntry entry(const fs::path& path) {
    const Place place = place_of(path, path.parent_path());
    const std::scoped_lock lock(mutex_);
    FarEntry& entry = entries_[path.string()];
    if (entry.file) return entry;
    std::error_code ignored;
    const fs::path local = place.folder.cache / place.name;
    if (!place.folder.cache.empty() && fs::is_regular_file(local, ignored)) {
      entry.cached = local;
    } else if (place.folder.offline) {
      throw Error::input("not in the hub's cache, and HF_HUB_OFFLINE is set")
          .in_file(path.string());
    }
    entry.file =
        std::make_shared<FarFile>(FarFile{.name = path.string(),
                                          .url = place.folder.base + escaped(place.name, "/"),
                                          .access = place.folder.access});
    if (entry.cached.empty()) entry.front = fetcher().ask_front(entry.file, kFrontBytes);
    return entry;
  }
  // A file of a mount, as it is now, or as it was when it was opened.
  [[nodiscard]] std::shared_ptr<FarFile> mounted(const fs::path& path, bool now) {
    const std::scoped_lock lock(mutex_);
    std::weak_ptr<FarFile>& known = mounted_[path.string()];
    std::shared_ptr<FarFile> file = known.lock();
    if (file && !now) return file;
    const FileStatus status = describe_file(path);
    if (file && file->status == status) return file;
    known = file =
        std::make_shared<FarFile>(FarFile{.name = path.string(),
                                          .size = status.size,
                                          .mounted = std::make_shared<const PositionedFile>(path),
                                          .status = status});
    return file;
  }
  [[nodiscard]] FarEntry fetched(const fs::path& path) {
    FarEntry found = entry(path);
    if (found.front) static_cast<void>(fetcher().wait(found.front));
    return found;
  }
  [[nodiscard]] bool lists(const fs::path& path) {
    const Place place = place_of(path, path.parent_path());
    if (!place.folder.listed) return fetcher().wait_if_there(entry(path).front) != nullptr;
    return std::ranges::any_of(place.folder.names, [&](const std::string& other) {
      return place.name.empty() || other == place.name || other.starts_with(place.name + "/");
    });
  }
  [[nodiscard]] std::vector<std::string> names(const fs::path& path, bool& all) {
    const Place place = place_of(path, path);
    all = place.folder.listed;
    if (all && place.folder.names.empty()) {
      throw Error::input("nothing is there").hint(place.folder.access->missing);
    }
    const std::string above = place.name.empty() ? "" : place.name + "/";
    std::set<std::string> found;
    for (const std::string& name : place.folder.names) {
      if (!name.starts_with(above)) continue;
      found.insert(name.substr(above.size(), name.find('/', above.size()) - above.size()));
    }
    if (all) return {found.begin(), found.end()};
    for (const char* name : kFirstFiles) static_cast<void>(entry(path / name));  // all at once
    for (const char* name : kFirstFiles) {
      if (lists(path / name)) found.insert(name);
    }
    if (found.empty() && above.empty()) static_cast<void>(fetched(path / kFirstFiles.front()));
    return {found.begin(), found.end()};
  }

  Fetcher& fetcher() {
    std::call_once(started_, [&] { fetcher_ = std::make_unique<Fetcher>(); });
    return *fetcher_;
  }
  ReadAhead& ahead() {
    std::call_once(reads_, [&] { ahead_ = std::make_unique<ReadAhead>(fetcher()); });
    return *ahead_;
  }

 private:
  struct Place {
    const FarFolder& folder;
    std::string name;  // in it
  };

  // Where a file or folder lies: in an open folder, or else in `root`, which is opened.
  Place place_of(const std::string& address, const std::string& root) {
    const std::scoped_lock lock(mutex_);
    const auto place_in = [&](const std::string& place, const FarFolder& folder) {
      return Place{folder, address.substr(std::min(address.size(), place.size() + 1))};
    };
    for (const auto& [place, folder] : folders_) {
      if (address == place || address.starts_with(place + "/")) return place_in(place, folder);
    }
    const std::string place = root_of(root);
    FarFolder opened = in_file(place, [&] { return open_far_folder(fetcher(), place); });
    return place_in(place, folders_.emplace(place, std::move(opened)).first->second);
  }

  std::once_flag started_, reads_;
  std::unique_ptr<Fetcher> fetcher_;
  std::unique_ptr<ReadAhead> ahead_;
  std::mutex mutex_;
  std::map<std::string, FarFolder> folders_;               // guarded by mutex_; by address
  std::map<std::string, FarEntry> entries_;                // guarded by mutex_; by address
  std::map<std::string, std::weak_ptr<FarFile>> mounted_;  // guarded by mutex_; by path
};

std::shared_ptr<FarSession> keep_far_files() {
  static std::mutex mutex;
  static std::weak_ptr<FarSession> last;
  const std::scoped_lock lock(mutex);
  std::shared_ptr<FarSession> session = last.lock();
  if (!session) last = session = std::make_shared<FarSession>();
  return session;
}

bool is_folder_at(const fs::path& path) {
  std::error_code ignored;
  if (!is_address(path)) return fs::is_directory(path, ignored);
  return !names_at(path).empty();
}

bool exists_at(const fs::path& path) {
  std::error_code ignored;
  return is_address(path) ? is_listed_at(path) : fs::exists(path, ignored);
}

bool is_listed_at(const fs::path& path) {
  if (is_address(path)) return keep_far_files()->lists(path);
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

std::vector<std::string> names_at(const fs::path& folder, bool* all) {
  bool listed = true;
  std::vector<std::string> names;
  if (is_address(folder)) {
    names = keep_far_files()->names(without_slashes(folder), listed);
  } else {
    std::error_code error;
    for (const auto& entry : list_directory(folder, error)) {
      names.push_back(entry.path().filename().string());
    }
    if (error) throw Error::input(fmt::format("cannot be listed: {}", error.message()));
  }
  if (all != nullptr) *all = listed;
  return names;
}

FileStatus status_at(const fs::path& path) {
  if (!is_address(path)) return describe_file(path);
  const FarEntry far = keep_far_files()->fetched(path);
  if (!far.cached.empty()) {
    FileStatus status = describe_file(far.cached);
    status.path = path;
    return status;
  }
  // What --resume compares: a file that changes has another validator.
  constexpr size_t kDigits = 15;
  const std::string stamp = checksum_of(far.file->validator).substr(0, kDigits);
  return {.path = path,
          .size = far.file->size,
          .mtime_ns = std::stoll(stamp, nullptr, 16),
          .mode = 0644};
}

std::string text_at(const fs::path& path, int64_t most) {
  if (!is_address(path)) return read_text_file(path, most);
  const PositionedFile file = file_at(path);
  if (file.size() > most) {
    throw Error::input(fmt::format("more than {} bytes", most)).in_file(path.string());
  }
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

bool reads_ahead_at(const fs::path& path) {
  constexpr int64_t kFuse = 0x65735546;  // FUSE_SUPER_MAGIC
  struct statfs status {};
  return is_address(path) || (::statfs(path.c_str(), &status) == 0 && status.f_type == kFuse);
}

PositionedFile file_at(const fs::path& path) {
  if (!reads_ahead_at(path)) return PositionedFile(path);
  const auto session = keep_far_files();
  if (!is_address(path)) {
    const std::shared_ptr<FarFile> far = session->mounted(path, true);
    return {far->size, [session, far](int64_t offset, MutableBytes out) {
              session->ahead().read(far, offset, out);
            }};
  }
  const FarEntry far = session->fetched(path);
  if (!far.cached.empty()) return PositionedFile(far.cached);
  return {far.file->size, [session, far](int64_t offset, MutableBytes out) {
            const UninitializedBytes& front = session->fetcher().wait(far.front);
            if (offset + std::ssize(out) > std::ssize(front)) {
              session->ahead().read(far.file, offset, out);
            } else if (!out.empty()) {
              std::memcpy(out.data(), front.data() + offset, out.size());
            }
          }};
}

std::string sha256_at(const fs::path& path) {
  if (!is_address(path)) return cached_sha256(path);
  const FarEntry far = keep_far_files()->fetched(path);
  return far.cached.empty() ? far.file->sha256 : cached_sha256(far.cached);
}

void expect_at(const fs::path& path, int64_t begin, int64_t size) {
  const auto session = keep_far_files();
  if (!is_address(path)) return session->ahead().expect(session->mounted(path, false), begin, size);
  const FarEntry far = session->entry(path);
  if (far.front) session->ahead().expect(far.file, begin, size);
}

void expect_nothing() { keep_far_files()->ahead().expect_nothing(); }

}  // namespace mxfp4
