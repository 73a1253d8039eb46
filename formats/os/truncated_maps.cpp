#include "formats/os/truncated_maps.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <mutex>
#include <utility>

#include "lib/core/error.hpp"

namespace mxfp4 {

// The handler may read an entry at any time, so entries are reused but never freed. An entry whose
// file was truncated is not reused either: it names that file. All orders here are the default: who
// sees an entry, or an `end`, sees what was written before, and each is used once for a map or a
// fault, not for a byte.
struct WatchedMap::Entry {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  std::string file;
  bool in_use = false;
  Entry* next = nullptr;
};

namespace {

std::mutex entries_mutex;
std::atomic<WatchedMap::Entry*> entries{nullptr};
std::atomic<WatchedMap::Entry*> truncated{nullptr};
std::atomic<uintptr_t> page_bytes{0};

static_assert(std::atomic<uintptr_t>::is_always_lock_free, "the handler reads these");

// The handler makes async-signal-safe calls only. POSIX does not list mmap among them, but on Linux
// it is a plain system call.
void replace_missing_pages(int signal, siginfo_t* info, void* /*context*/) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const uintptr_t in_page = address % page_bytes;
  for (WatchedMap::Entry* at = entries; at != nullptr; at = at->next) {
    const uintptr_t end = at->end;
    if (address < at->begin || address >= end) continue;
    // The rest of the file is missing too: replacing all of it costs one signal, not one per page.
    void* zeros = ::mmap(static_cast<char*>(info->si_addr) - in_page, end - address + in_page,
                         PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) break;
    WatchedMap::Entry* none = nullptr;
    truncated.compare_exchange_strong(none, at);
    return;
  }
  // The address is in no map of ours: the instruction runs again and ends the process as usual.
  std::signal(signal, SIG_DFL);
}

}  // namespace

void survive_truncation() {
  page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = replace_missing_pages;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

std::optional<std::string> truncated_file() {
  const WatchedMap::Entry* entry = truncated;
  return entry == nullptr ? std::nullopt : std::optional(entry->file);
}

void check_truncation() {
  if (const auto file = truncated_file()) {
    throw Error::input(fmt::format("{}: became shorter while it was read", *file));
  }
}

WatchedMap::WatchedMap(ConstBytes bytes, const std::string& file) {
  const std::scoped_lock lock(entries_mutex);
  entry_ = entries;
  while (entry_ != nullptr && (entry_->in_use || entry_ == truncated)) entry_ = entry_->next;
  if (entry_ == nullptr) {
    entry_ = new Entry;
    entry_->next = entries;
    entries = entry_;
  }
  entry_->in_use = true;
  entry_->file = file;
  // `end` last: until it is set the entry covers nothing.
  entry_->begin = reinterpret_cast<uintptr_t>(bytes.data());
  entry_->end = entry_->begin + bytes.size();
}

WatchedMap::WatchedMap(WatchedMap&& other) noexcept
    : entry_(std::exchange(other.entry_, nullptr)) {}

WatchedMap& WatchedMap::operator=(WatchedMap&& other) noexcept {
  std::swap(entry_, other.entry_);
  return *this;
}

WatchedMap::~WatchedMap() {
  if (entry_ == nullptr) return;
  const std::scoped_lock lock(entries_mutex);
  entry_->end = 0;
  entry_->in_use = false;
}

}  // namespace mxfp4
