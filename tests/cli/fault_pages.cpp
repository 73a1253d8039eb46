// A part of the library that faults.cpp describes: another size of the system's pages.
//   FAULT_PAGE_BYTES=N   the system's pages have N bytes, a multiple of the real ones' size: sysconf() says
//                        so, maps begin at multiples of N, and a call about memory elsewhere ends the
//                        program, though it be advice whose failure nobody sees
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "faults.hpp"

namespace {

// Read once: the program's handler of SIGBUS maps, and calls nothing that locks. Before that no
// page is played.
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

// The first place in a range of pages, taken for the caller, where a played page begins. What the
// caller does not map of the range stays without access.
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
  if (what == _SC_PAGESIZE && played_page != 0) return played_page;
  return real(&sysconf, "sysconf")(what);
}
int getpagesize() noexcept {
  return played_page != 0 ? static_cast<int>(played_page) : real(&getpagesize, "getpagesize")();
}
void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  if (file >= 0 && call_fails("mmap", Path(file).text)) return MAP_FAILED;
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

}  // extern "C"
