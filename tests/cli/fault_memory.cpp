// Preloaded into the program by tests of what it does without memory. Not part of faults.cpp's
// library, which also runs beside sanitizers: they have allocators of their own.
//   FAULT_ALLOCATION=N   the Nth allocation since main() began fails; N+: that one and all behind it
//   FAULT_ALLOCATIONS=FILE  gets the number of allocations, when the program ends
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// The C library's own names of what is replaced below.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

using Main = int (*)(int, char**, char**);

Main real_main = nullptr;
std::atomic<bool> begun{false};
std::atomic<long> allocations{0};
long fails_at = 0;
bool fails_behind = false;

int counted_main(int count, char** words, char** environment) {
  if (const char* rule = std::getenv("FAULT_ALLOCATION")) {
    fails_at = std::atol(rule);
    fails_behind = std::strchr(rule, '+') != nullptr;
  }
  begun = true;
  return real_main(count, words, environment);
}

// Whether this allocation fails; errno is set then.
bool no_memory() {
  if (!begun) return false;
  const long now = ++allocations;
  if (fails_at == 0 || now < fails_at || (now > fails_at && !fails_behind)) return false;
  errno = ENOMEM;
  return true;
}

struct AtEnd {
  ~AtEnd() {
    const char* file = std::getenv("FAULT_ALLOCATIONS");
    if (file == nullptr) return;
    char text[32];
    const int size = std::snprintf(text, sizeof text, "%ld\n", allocations.load());
    const int out = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    (void)!write(out, text, static_cast<size_t>(size));
    close(out);
  }
} at_end;

}  // namespace

extern "C" {

int __libc_start_main(Main entry, int count, char** words, void (*init)(), void (*fini)(),
                      void (*loader_fini)(), void* stack) {
  real_main = entry;
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  const auto start = reinterpret_cast<Start>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(counted_main, count, words, init, fini, loader_fini, stack);
}
void* malloc(size_t size) { return no_memory() ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) {
  return no_memory() ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* at, size_t size) {
  return size > 0 && no_memory() ? nullptr : __libc_realloc(at, size);
}
void* memalign(size_t alignment, size_t size) {
  return no_memory() ? nullptr : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** at, size_t alignment, size_t size) {
  const int before = errno;
  void* const memory = memalign(alignment, size);
  errno = before;
  if (memory == nullptr) return ENOMEM;
  *at = memory;
  return 0;
}

}  // extern "C"
