// Preloaded into the program by tests of a power cut: writes down what it does to files, in order,
// so that power_cut.py can play what a cut leaves. FAULT_TRACE=FILE: one record each, a line and,
// behind write, the bytes:
//   create INODE PATH, folder INODE PATH   remove PATH (of a file or a folder)
//   write INODE OFFSET BYTES   rename FROM \t TO, exchange A \t B
//   sync INODE                 of a file or a folder
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

namespace {

template <class Function>
Function real(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

std::mutex order;

void record(const std::string& line, const void* bytes = nullptr, size_t size = 0) {
  const char* file = std::getenv("FAULT_TRACE");
  if (file == nullptr) return;
  static const auto kOut = static_cast<int>(
      syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  const std::string head = line + "\n";
  const iovec parts[] = {{const_cast<char*>(head.data()), head.size()},
                         {const_cast<void*>(bytes), size}};
  (void)!syscall(SYS_writev, kOut, parts, size > 0 ? 2 : 1);
}

std::string path_of(int base, const char* name) {
  std::string path;
  if (base != AT_FDCWD && name[0] != '/') {
    char text[PATH_MAX];
    const ssize_t size =
        readlink(("/proc/self/fd/" + std::to_string(base)).c_str(), text, sizeof text);
    if (size > 0) path.assign(text, static_cast<size_t>(size)).append("/");
  } else if (name[0] != '/') {
    char text[PATH_MAX];
    if (getcwd(text, sizeof text) != nullptr) path.append(text).append("/");
  }
  return path + name;
}

// The inode of an open file or folder of a file system; 0 of anything else.
std::string inode_of(int file) {
  struct stat found {};
  const bool known = fstat(file, &found) == 0 && (S_ISREG(found.st_mode) || S_ISDIR(found.st_mode));
  return std::to_string(known ? found.st_ino : 0);
}

// Runs `call`; if it succeeds, records `line` before any other thread does anything to a file.
template <class Call>
int kept(const std::string& line, const Call& call) {
  const std::scoped_lock lock(order);
  const int result = call();
  const int saved = errno;
  if (result == 0) record(line);
  errno = saved;
  return result;
}

int opened(int base, const char* name, int flags, mode_t mode) {
  const std::scoped_lock lock(order);
  const std::string path = path_of(base, name);
  const bool fresh =
      (flags & O_CREAT) != 0 && faccessat(base, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
  const int file = real(&openat, "openat")(base, name, flags, mode);
  if (file >= 0 && fresh) record("create " + inode_of(file) + " " + path);
  return file;
}

void written(int file, off_t offset, const void* bytes, ssize_t size) {
  if (size > 0 && file > 2 && inode_of(file) != "0") {
    record("write " + inode_of(file) + " " + std::to_string(offset) + " " + std::to_string(size),
           bytes, static_cast<size_t>(size));
  }
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return opened(AT_FDCWD, path, flags, mode);
}
int openat(int base, const char* name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return opened(base, name, flags, mode);
}
ssize_t write(int file, const void* bytes, size_t size) {
  const std::scoped_lock lock(order);
  const off_t at = file > 2 ? lseek(file, 0, SEEK_CUR) : 0;
  struct stat found {};
  const bool appends = (fcntl(file, F_GETFL) & O_APPEND) != 0 && fstat(file, &found) == 0;
  const ssize_t done = real(&write, "write")(file, bytes, size);
  const int saved = errno;
  written(file, appends ? found.st_size : at, bytes, done);
  errno = saved;
  return done;
}
ssize_t pwritev(int file, const iovec* parts, int many, off_t offset) {
  const std::scoped_lock lock(order);
  const ssize_t done = real(&pwritev, "pwritev")(file, parts, many, offset);
  const int saved = errno;
  std::string all;
  for (int i = 0; i < many; ++i)
    all.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  written(file, offset, all.data(), done);
  errno = saved;
  return done;
}
int fsync(int file) {
  return kept("sync " + inode_of(file), [&] { return real(&fsync, "fsync")(file); });
}
int fdatasync(int file) {
  return kept("sync " + inode_of(file), [&] { return real(&fdatasync, "fdatasync")(file); });
}
int mkdirat(int base, const char* name, mode_t mode) noexcept {
  const std::scoped_lock lock(order);
  const int result = real(&mkdirat, "mkdirat")(base, name, mode);
  const int saved = errno;
  struct stat found {};
  if (result == 0 && fstatat(base, name, &found, AT_SYMLINK_NOFOLLOW) == 0) {
    record("folder " + std::to_string(found.st_ino) + " " + path_of(base, name));
  }
  errno = saved;
  return result;
}
int mkdir(const char* path, mode_t mode) noexcept { return mkdirat(AT_FDCWD, path, mode); }
int unlinkat(int base, const char* name, int flags) noexcept {
  return kept("remove " + path_of(base, name),
              [&] { return real(&unlinkat, "unlinkat")(base, name, flags); });
}
int unlink(const char* path) noexcept { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char* path) noexcept { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int renameat(int from_at, const char* from, int to_at, const char* to) noexcept {
  return kept("rename " + path_of(from_at, from) + "\t" + path_of(to_at, to),
              [&] { return real(&renameat, "renameat")(from_at, from, to_at, to); });
}
int rename(const char* from, const char* to) noexcept {
  return renameat(AT_FDCWD, from, AT_FDCWD, to);
}
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  const std::string call = (flags & RENAME_EXCHANGE) != 0 ? "exchange " : "rename ";
  return kept(call + path_of(from_at, from) + "\t" + path_of(to_at, to),
              [&] { return real(&renameat2, "renameat2")(from_at, from, to_at, to, flags); });
}

}  // extern "C"
