// Preloaded into the program by tests of what a kill leaves: counts the calls that change files.
//   FAULT_KILL_AT=N      SIGKILL before the Nth of them
//   FAULT_STOP_AT=N      SIGSTOP before the Nth of them
//   FAULT_LOG=FILE       one line each
//   FAULT_NO_EXCHANGE=1  the file system cannot exchange two names
//   FAULT_DEVICE=PREFIX  paths that begin so are on a device of another number
//   FAULT_NO_DIRECT=flag files cannot be made direct (O_DIRECT); =read: they can, but not read
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> calls{0};

template <class Function>
Function real(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void count(const char* what, const char* path) {
  const char* log = std::getenv("FAULT_LOG");
  if (log != nullptr) {
    // A bare system call, which is not counted.
    const auto file =
        static_cast<int>(syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND, 0666));
    char line[4096];
    const int size = std::snprintf(line, sizeof line, "%s %s\n", what, path);
    (void)!syscall(SYS_write, file, line, static_cast<size_t>(size));
    syscall(SYS_close, file);
  }
  const long now = ++calls;
  const auto is_now = [now](const char* name) {
    const char* at = std::getenv(name);
    return at != nullptr && now == std::atol(at);
  };
  if (is_now("FAULT_KILL_AT")) std::raise(SIGKILL);
  if (is_now("FAULT_STOP_AT")) std::raise(SIGSTOP);
}

bool has_no_direct(const char* when) {
  const char* named = std::getenv("FAULT_NO_DIRECT");
  return named != nullptr && std::strcmp(named, when) == 0;
}

}  // namespace

extern "C" {

int stat(const char* path, struct stat* found) noexcept {
  // Written as an alias, since the function and the type have the same name here.
  using Stat = int (*)(const char*, struct stat*);
  const int result = reinterpret_cast<Stat>(dlsym(RTLD_NEXT, "stat"))(path, found);
  const char* prefix = std::getenv("FAULT_DEVICE");
  if (result == 0 && prefix != nullptr && std::strncmp(path, prefix, std::strlen(prefix)) == 0) {
    found->st_dev += 1000;
  }
  return result;
}
int mkdir(const char* path, mode_t mode) noexcept {
  count("mkdir", path);
  return real(&mkdir, "mkdir")(path, mode);
}
int rmdir(const char* path) noexcept {
  count("rmdir", path);
  return real(&rmdir, "rmdir")(path);
}
int unlink(const char* path) noexcept {
  count("unlink", path);
  return real(&unlink, "unlink")(path);
}
int remove(const char* path) noexcept {
  count("remove", path);
  return real(&remove, "remove")(path);
}
int rename(const char* from, const char* to) noexcept {
  char both[2048];
  std::snprintf(both, sizeof both, "%s %s", from, to);
  count("rename", both);
  return real(&rename, "rename")(from, to);
}
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  if (std::getenv("FAULT_NO_EXCHANGE") != nullptr) {
    errno = EINVAL;
    return -1;
  }
  char both[2048];
  std::snprintf(both, sizeof both, "%s %s", from, to);
  count("exchange", both);
  return real(&renameat2, "renameat2")(from_at, from, to_at, to, flags);
}
int mkostemp(char* name, int flags) {
  count("mkostemp", name);
  return real(&mkostemp, "mkostemp")(name, flags);
}
int fsync(int file) {
  count("fsync", "");
  return real(&fsync, "fsync")(file);
}
int fdatasync(int file) {
  count("fdatasync", "");
  return real(&fdatasync, "fdatasync")(file);
}
int fcntl(int file, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const bool makes_direct =
      command == F_SETFL && (reinterpret_cast<intptr_t>(argument) & O_DIRECT) != 0;
  if (makes_direct && has_no_direct("flag")) {
    errno = EINVAL;
    return -1;
  }
  return real(&fcntl, "fcntl")(file, command, argument);
}
ssize_t pread(int file, void* memory, size_t bytes, off_t offset) {
  if (has_no_direct("read") && (fcntl(file, F_GETFL) & O_DIRECT) != 0) {
    errno = EINVAL;
    return -1;
  }
  return real(&pread, "pread")(file, memory, bytes, offset);
}
ssize_t pwritev(int file, const iovec* parts, int many, off_t offset) {
  count("pwritev", "");
  return real(&pwritev, "pwritev")(file, parts, many, offset);
}

}  // extern "C"
