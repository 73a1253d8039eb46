// Preloaded into the program by tests of what a kill or a fault leaves. Some calls change files:
//   FAULT_KILL_AT=N      SIGKILL before the Nth of them
//   FAULT_STOP_AT=N      SIGSTOP before the Nth of them
//   FAULT_LOG=FILE       one line each
// Every call below can fail:
//   FAULT_AT=CALL:N:WHAT the Nth call of this kind: WHAT is an errno's name, zero (nothing is written or
//                        read), short (half of it), flip (one bit of what pwritev writes is another, or of each
//                        byte that pread or preadv reads), or run (the shell command FAULT_RUN runs
//                        before it); with N+: that one and all behind it
//   FAULT_PATH=TEXT      FAULT_AT counts only calls on paths with this text; one that begins with / is also
//                        looked for in a relative path behind the working directory
//   FAULT_HIT=FILE       is made when FAULT_AT came to pass; its text is the path
//   FAULT_CALLS=FILE     one line each, of calls on paths with FAULT_PATH: CALL PATH
// A file system lacks something:
//   FAULT_NO_EXCHANGE=1  it cannot exchange two names
//   FAULT_DEVICE=PREFIX  paths that begin so are on a device of another number
//   FAULT_NO_DIRECT=flag files cannot be made direct (O_DIRECT); =read: they can, but not read
//   FAULT_PAGE_...       see fault_pages.cpp
#include "faults.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::atomic<long> calls{0};

struct TwoPaths {
  char text[2 * PATH_MAX] = "";
  TwoPaths(const Path& from, const Path& to) {
    std::snprintf(text, sizeof text, "%s %s", from.text, to.text);
  }
};

// Bare system calls, which are not counted.
void add_line(const char* file, const char* what, const char* path) {
  const auto out =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND, 0666));
  char line[2 * PATH_MAX + 64];
  const int size = std::snprintf(line, sizeof line, "%s %s\n", what, path);
  (void)!syscall(SYS_write, out, line, static_cast<size_t>(size));
  syscall(SYS_close, out);
}

// A call that changes files.
void count(const char* what, const char* path) {
  const int saved = errno;
  if (const char* log = std::getenv("FAULT_LOG")) add_line(log, what, path);
  const long now = ++calls;
  const auto is_now = [now](const char* name) {
    const char* at = std::getenv(name);
    return at != nullptr && now == std::atol(at);
  };
  if (is_now("FAULT_KILL_AT")) std::raise(SIGKILL);
  if (is_now("FAULT_STOP_AT")) std::raise(SIGSTOP);
  errno = saved;
}

int number_of(const char* name) {
  struct Named {
    const char* name;
    int number;
  };
  for (const Named& known :
       {Named{"EIO", EIO}, Named{"ENOSPC", ENOSPC}, Named{"EINTR", EINTR}, Named{"EACCES", EACCES},
        Named{"ESTALE", ESTALE}, Named{"EXDEV", EXDEV}, Named{"EPERM", EPERM},
        Named{"EROFS", EROFS}, Named{"EDQUOT", EDQUOT}, Named{"EMFILE", EMFILE},
        Named{"ENOMEM", ENOMEM}, Named{"ENOENT", ENOENT}, Named{"EINVAL", EINVAL},
        Named{"ENOSYS", ENOSYS}, Named{"ENOLCK", ENOLCK}, Named{"EBUSY", EBUSY},
        Named{"EFBIG", EFBIG}, Named{"EAGAIN", EAGAIN}}) {
    if (std::strcmp(known.name, name) == 0) return known.number;
  }
  return 0;
}

void run_command() {
  const pid_t child = fork();
  if (child == 0) {
    unsetenv("LD_PRELOAD");
    execl("/bin/sh", "sh", "-c", std::getenv("FAULT_RUN"), nullptr);
    _exit(127);
  }
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// Whether FAULT_PATH is in this path.
bool is_wanted(const char* path) {
  const char* wanted = std::getenv("FAULT_PATH");
  if (wanted == nullptr || std::strstr(path, wanted) != nullptr) return true;
  char whole[2 * PATH_MAX] = "";
  const int saved = errno;
  if (wanted[0] != '/' || path[0] == '/' || getcwd(whole, PATH_MAX) == nullptr) whole[0] = 0;
  errno = saved;
  const size_t end = std::strlen(whole);
  std::snprintf(whole + end, sizeof whole - end, "/%s", path);
  return end > 0 && std::strstr(whole, wanted) != nullptr;
}

enum class Fault { kNone, kError, kZero, kShort, kFlip };

// What FAULT_AT makes of this call; with kError, errno is set.
Fault fault_of(const char* call, const char* path) {
  static std::atomic<long> seen{0};
  const char* rule = std::getenv("FAULT_AT");
  const char* log = std::getenv("FAULT_CALLS");
  if (rule == nullptr && log == nullptr) return Fault::kNone;
  if (!is_wanted(path)) return Fault::kNone;
  if (log != nullptr) add_line(log, call, path);
  char name[32];
  char rest[32];
  long at = 0;
  if (rule == nullptr || std::sscanf(rule, "%31[^:]:%ld%31s", name, &at, rest) != 3) {
    return Fault::kNone;
  }
  const bool all = rest[0] == '+';
  const char* what = rest + (all ? 2 : 1);
  if (std::strcmp(name, call) != 0) return Fault::kNone;
  const long now = ++seen;
  if (all ? now < at : now != at) return Fault::kNone;
  if (const char* hit = std::getenv("FAULT_HIT")) add_line(hit, call, path);
  const int saved = errno;
  if (std::strcmp(what, "run") == 0) run_command();
  errno = saved;
  if (std::strcmp(what, "zero") == 0) return Fault::kZero;
  if (std::strcmp(what, "short") == 0) return Fault::kShort;
  if (std::strcmp(what, "flip") == 0) return Fault::kFlip;
  if (number_of(what) == 0) return Fault::kNone;
  errno = number_of(what);
  return Fault::kError;
}
bool fails(const char* call, const char* path) { return fault_of(call, path) == Fault::kError; }
bool fails(const char* call, const Path& path) { return fails(call, path.text); }

// Reads or writes `size` bytes, or as few as the fault says. Sets `flips` if a bit is to change.
template <class Move>
ssize_t move_bytes(const char* call, int file, size_t size, Move move, bool* flips = nullptr) {
  switch (file <= 2 ? Fault::kNone : fault_of(call, Path(file).text)) {
    case Fault::kError:
      return -1;
    case Fault::kZero:
      return 0;
    case Fault::kShort:
      return move(size > 1 ? size / 2 : size);
    case Fault::kFlip:
      if (flips != nullptr) *flips = true;
      break;
    case Fault::kNone:
      break;
  }
  return move(size);
}
// The same of several parts: half of the first one, if it is short.
template <class Move>
ssize_t move_parts(const char* call, int file, const iovec* parts, int many, Move move,
                   bool* flips = nullptr) {
  const auto some = [&](size_t of_two) {
    iovec first = parts[0];
    if (of_two == 2 || first.iov_len < 2) return move(parts, many);
    first.iov_len /= 2;
    return move(&first, 1);
  };
  return move_bytes(call, file, 2, some, flips);
}

bool has_no_direct(const char* when) {
  const char* named = std::getenv("FAULT_NO_DIRECT");
  return named != nullptr && std::strcmp(named, when) == 0;
}

mode_t mode_of(int flags, va_list arguments) {
  const bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return creates ? va_arg(arguments, mode_t) : 0;
}

bool open_fails(const Path& path, int flags) {
  const bool creates = (flags & O_CREAT) != 0;
  if (creates) count("create", path.text);
  return fails(creates ? "create" : "open", path);
}

}  // namespace

bool call_fails(const char* call, const char* path) { return fails(call, path); }

extern "C" {

int mkdir(const char* path, mode_t mode) noexcept {
  count("mkdir", path);
  if (fails("mkdir", path)) return -1;
  return real(&mkdir, "mkdir")(path, mode);
}
int mkdirat(int base, const char* name, mode_t mode) noexcept {
  const Path path(base, name);
  count("mkdir", path.text);
  if (fails("mkdir", path)) return -1;
  return real(&mkdirat, "mkdirat")(base, name, mode);
}
int rmdir(const char* path) noexcept {
  count("rmdir", path);
  if (fails("rmdir", path)) return -1;
  return real(&rmdir, "rmdir")(path);
}
int unlink(const char* path) noexcept {
  count("unlink", path);
  if (fails("unlink", path)) return -1;
  return real(&unlink, "unlink")(path);
}
int remove(const char* path) noexcept {
  count("remove", path);
  if (fails("remove", path)) return -1;
  return real(&remove, "remove")(path);
}
int unlinkat(int base, const char* name, int flags) noexcept {
  const char* const call = (flags & AT_REMOVEDIR) != 0 ? "rmdir" : "unlink";
  const Path path(base, name);
  count(call, path.text);
  if (fails(call, path)) return -1;
  return real(&unlinkat, "unlinkat")(base, name, flags);
}
int rename(const char* from, const char* to) noexcept {
  const TwoPaths both(Path{from}, Path{to});
  count("rename", both.text);
  if (fails("rename", both.text)) return -1;
  return real(&rename, "rename")(from, to);
}
int renameat(int from_at, const char* from, int to_at, const char* to) noexcept {
  const TwoPaths both(Path(from_at, from), Path(to_at, to));
  count("rename", both.text);
  if (fails("rename", both.text)) return -1;
  return real(&renameat, "renameat")(from_at, from, to_at, to);
}
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  if (std::getenv("FAULT_NO_EXCHANGE") != nullptr) {
    errno = EINVAL;
    return -1;
  }
  const TwoPaths both(Path(from_at, from), Path(to_at, to));
  count("exchange", both.text);
  if (fails("exchange", both.text)) return -1;
  return real(&renameat2, "renameat2")(from_at, from, to_at, to, flags);
}
int mkostemp(char* name, int flags) {
  count("mkostemp", name);
  if (fails("mkostemp", name)) return -1;
  return real(&mkostemp, "mkostemp")(name, flags);
}
int fsync(int file) {
  count("fsync", "");
  if (fails("fsync", Path(file))) return -1;
  return real(&fsync, "fsync")(file);
}
int fdatasync(int file) {
  count("fdatasync", "");
  if (fails("fdatasync", Path(file))) return -1;
  return real(&fdatasync, "fdatasync")(file);
}
int fchmod(int file, mode_t mode) noexcept {
  if (fails("fchmod", Path(file))) return -1;
  return real(&fchmod, "fchmod")(file, mode);
}
int flock(int file, int operation) noexcept {
  if (fails("flock", Path(file))) return -1;
  return real(&flock, "flock")(file, operation);
}
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if (open_fails(Path(path), flags)) return -1;
  return real(&open, "open")(path, flags, mode);
}
int openat(int base, const char* name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if (open_fails(Path(base, name), flags)) return -1;
  return real(&openat, "openat")(base, name, flags, mode);
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
ssize_t read(int file, void* bytes, size_t size) {
  return move_bytes("read", file, size,
                    [&](size_t some) { return real(&read, "read")(file, bytes, some); });
}
ssize_t write(int file, const void* bytes, size_t size) {
  return move_bytes("write", file, size,
                    [&](size_t some) { return real(&write, "write")(file, bytes, some); });
}
ssize_t pread(int file, void* memory, size_t bytes, off_t offset) {
  if (has_no_direct("read") && (fcntl(file, F_GETFL) & O_DIRECT) != 0) {
    errno = EINVAL;
    return -1;
  }
  bool flips = false;
  const ssize_t got = move_bytes(
      "pread", file, bytes,
      [&](size_t some) { return real(&pread, "pread")(file, memory, some, offset); }, &flips);
  // Direct reads begin before what is wanted, and end behind it.
  for (ssize_t i = 0; flips && i < got; ++i) static_cast<unsigned char*>(memory)[i] ^= 1;
  return got;
}
ssize_t preadv(int file, const iovec* parts, int many, off_t offset) {
  bool flips = false;
  const ssize_t got = move_parts(
      "preadv", file, parts, many,
      [&](const iovec* some, int number) {
        return real(&preadv, "preadv")(file, some, number, offset);
      },
      &flips);
  for (int i = 0; flips && i < many; ++i) {
    for (size_t j = 0; j < parts[i].iov_len; ++j) static_cast<char*>(parts[i].iov_base)[j] ^= 1;
  }
  return got;
}
ssize_t pwritev(int file, const iovec* parts, int many, off_t offset) {
  count("pwritev", "");
  bool flips = false;
  const auto write = [&](const iovec* some, int number) {
    if (!flips || some->iov_len == 0) return real(&pwritev, "pwritev")(file, some, number, offset);
    std::string other(static_cast<const char*>(some->iov_base), some->iov_len);
    other[0] = static_cast<char>(other[0] ^ 1);
    const iovec changed{other.data(), other.size()};
    return real(&pwritev, "pwritev")(file, &changed, 1, offset);
  };
  return move_parts("pwritev", file, parts, many, write, &flips);
}

}  // extern "C"
