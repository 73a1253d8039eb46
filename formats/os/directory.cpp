#include "formats/os/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "formats/os/interrupts.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_directory(const fs::path& path, std::string_view action) {
  const int code = errno;
  throw Error::output(fmt::format("{}: {}", action, std::strerror(code)))
      .in_file(path.empty() ? "." : path.string());
}

// -1 with errno set if that fails. O_PATH serves where the directory may not be listed.
int open_directory(int base, const char* path, bool follow) {
  const int flags = O_DIRECTORY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW);
  const int descriptor = openat(base, path, O_RDONLY | flags);
  return descriptor < 0 && errno == EACCES ? openat(base, path, O_PATH | flags) : descriptor;
}

std::shared_ptr<const int> closed_by_the_last(int descriptor) {
  return {new int(descriptor), [](const int* open) {
            close(*open);
            delete open;
          }};
}

}  // namespace

std::vector<fs::directory_entry> list_directory(const fs::path& directory, std::error_code& error) {
  std::vector<fs::directory_entry> entries;
  // A range-based for would throw if reading the next entry fails.
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(*at);
  }
  return entries;
}

Directory::Directory(fs::path path, int descriptor)
    : path_(std::move(path)), descriptor_(closed_by_the_last(descriptor)) {}

Directory::Directory(fs::path path, bool follow) : path_(std::move(path)) {
  const int descriptor = open_directory(AT_FDCWD, path_.empty() ? "." : path_.c_str(), follow);
  if (descriptor < 0) refuse_directory(path_, "cannot open");
  descriptor_ = closed_by_the_last(descriptor);
}

std::optional<Directory> Directory::find(const fs::path& folder) const {
  Directory at = *this;
  for (const fs::path& part : folder) {
    if (part.empty() || part == ".") continue;
    const int descriptor = open_directory(at.descriptor(), part.c_str(), /*follow=*/false);
    if (descriptor < 0) return std::nullopt;
    at = Directory(at.path_ / part, descriptor);
  }
  return at;
}

Directory Directory::folder(const fs::path& folder) const {
  Directory at = *this;
  for (const fs::path& part : folder) {
    if (part.empty() || part == ".") continue;
    const fs::path path = at.path_ / part;
    int descriptor = open_directory(at.descriptor(), part.c_str(), /*follow=*/false);
    if (descriptor < 0 && errno == ENOENT) {
      if (mkdirat(at.descriptor(), part.c_str(), 0777) == 0) {
        at.sync();  // else a power cut may lose it, and all that is in it
      } else if (errno != EEXIST) {
        refuse_directory(path, "cannot create");
      }
      descriptor = open_directory(at.descriptor(), part.c_str(), /*follow=*/false);
    }
    if (descriptor < 0) refuse_directory(path, "cannot open");
    at = Directory(path, descriptor);
  }
  return at;
}

std::optional<FileIdentity> Directory::entry(const std::string& name) const {
  struct stat found {};
  if (fstatat(descriptor(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return FileIdentity{found.st_dev, found.st_ino};
}

bool Directory::holds(const std::string& name, const Directory& directory) const {
  struct stat opened {};
  return fstat(directory.descriptor(), &opened) == 0 &&
         entry(name) == FileIdentity{opened.st_dev, opened.st_ino};
}

std::vector<std::string> Directory::names() const {
  const int again = openat(descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> open(again < 0 ? nullptr : fdopendir(again), closedir);
  if (!open) {
    if (again >= 0) close(again);
    refuse_directory(path_, "cannot be listed");
  }
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(open.get());
    if (entry == nullptr && errno != 0) refuse_directory(path_, "cannot be listed");
    if (entry == nullptr) return names;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
}

bool Directory::create(const std::string& name, uint32_t mode) const {
  return mkdirat(descriptor(), name.c_str(), mode) == 0;
}

void Directory::rename(const std::string& from, const Directory& to,
                       const std::string& name) const {
  if (renameat(descriptor(), from.c_str(), to.descriptor(), name.c_str()) != 0) {
    refuse_directory(to.path_ / name, "cannot be replaced");
  }
}

bool Directory::exchange(const std::string& name, const Directory& other,
                         const std::string& other_name) const {
  return renameat2(descriptor(), name.c_str(), other.descriptor(), other_name.c_str(),
                   RENAME_EXCHANGE) == 0;
}

void Directory::remove(const std::string& name) const {
  if (unlinkat(descriptor(), name.c_str(), 0) == 0 || errno == ENOENT) return;
  refuse_directory(path_ / name, "cannot remove");
}

bool Directory::remove_folder(const std::string& name) const {
  return unlinkat(descriptor(), name.c_str(), AT_REMOVEDIR) == 0;
}

void Directory::sync() const {
  const int code = sync_file(descriptor());
  // Some file systems cannot sync a directory, and neither can this program if it may not list it;
  // the renames are as durable as they get.
  if (code == 0 || code == EINVAL || code == ENOTSUP || code == ENOSYS || code == EBADF) return;
  errno = code;
  refuse_directory(path_, "cannot fsync");
}

int sync_file(int descriptor, bool data_only) {
  Interrupts interrupts;
  for (;;) {
    if ((data_only ? fdatasync(descriptor) : fsync(descriptor)) == 0) return 0;
    if (!interrupts.again()) return errno;
  }
}

}  // namespace mxfp4
