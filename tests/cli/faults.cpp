// Preloaded into the program by tests of what a kill leaves: counts the calls that change files.
//   FAULT_KILL_AT=N      SIGKILL before the Nth of them
//   FAULT_STOP_AT=N      SIGSTOP before the Nth of them
//   FAULT_LOG=FILE       one line each
//   FAULT_NO_EXCHANGE=1  the file system cannot exchange two names
//   FAULT_DEVICE=PREFIX  paths that begin so are on a device of another number
//   FAULT_NO_DIRECT=flag files cannot be made direct (O_DIRECT); =read: they can, but not read
//   FAULT_PAGE_BYTES=N   the system's pages have N bytes, a multiple of the real ones' size: sysconf() says
//                        so, maps begin at multiples of N, and a call about memory elsewhere ends the
//                        program, though it be advice whose failure nobody sees
//   FAULT_PAGE_HIDDEN=1  sysconf() does not say so
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
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

// Read once: the program's handler of SIGBUS maps, and calls nothing that locks. Before that no page is
// played.
const long played_page = [] {
  const char* named = std::getenv("FAULT_PAGE_BYTES");
  return named == nullptr ? 0 : std::atol(named);
}();

void* map_memory(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  static const auto kReal = real(&map_memory, "mmap");
  return kReal(at, bytes, protection, flags, file, offset);
}

// Ends the program unless a played page begins there, or none is played.
void require_page(const char* call, uint64_t at) {
  if (played_page == 0 || at % static_cast<uint64_t>(played_page) == 0) return;
  std::fprintf(stderr, "%s: %#llx is inside of a page\n", call,
               static_cast<unsigned long long>(at));
  std::abort();
}

void require_page(const char* call, const void* at) {
  require_page(call, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(at)));
}

// The first place in a range of pages, taken for the caller, where a played page begins. What the caller
// does not map of the range stays without access.
void* find_page(size_t bytes) {
  const auto page = static_cast<size_t>(played_page);
  const size_t range = bytes + page;
  void* const free =
      map_memory(nullptr, range, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (free == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(free);
  return reinterpret_cast<void*>((begin + page - 1) / page * page);
}

}  // namespace

extern "C" {

long sysconf(int what) noexcept {
  const bool told = played_page != 0 && std::getenv("FAULT_PAGE_HIDDEN") == nullptr;
  if (what == _SC_PAGESIZE && told) return played_page;
  return real(&sysconf, "sysconf")(what);
}
int getpagesize() noexcept {
  return played_page != 0 ? static_cast<int>(played_page) : real(&getpagesize, "getpagesize")();
}
void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  if (played_page == 0) return map_memory(at, bytes, protection, flags, file, offset);
  require_page("mmap", static_cast<uint64_t>(offset));
  if ((flags & MAP_FIXED) != 0) {
    require_page("mmap", at);
  } else {
    at = find_page(bytes);
    if (at == nullptr) return MAP_FAILED;
    flags |= MAP_FIXED;
  }
  return map_memory(at, bytes, protection, flags, file, offset);
}
int munmap(void* at, size_t bytes) noexcept {
  require_page("munmap", at);
  return real(&munmap, "munmap")(at, bytes);
}
int mprotect(void* at, size_t bytes, int protection) noexcept {
  require_page("mprotect", at);
  return real(&mprotect, "mprotect")(at, bytes, protection);
}
int madvise(void* at, size_t bytes, int advice) noexcept {
  require_page("madvise", at);
  return real(&madvise, "madvise")(at, bytes, advice);
}

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
