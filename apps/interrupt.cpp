#include "apps/interrupt.hpp"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace mxfp4 {
namespace {

// A second signal within this time does not count: batch systems and terminals send some twice.
constexpr int64_t kImpatience = 1'000'000'000;  // ns

const char* text = "";
// The default orders: no other memory is read because of either, and they are asked once for a job.
std::atomic<int> noted{0};
std::atomic<int64_t> noted_at{0};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free,
              "a signal handler stores to them");

int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void note(int signal) {
  int64_t first = 0;
  if (noted_at.compare_exchange_strong(first, now())) {
    noted.store(signal);
  } else if (now() - first > kImpatience) {
    std::signal(signal, SIG_DFL);
    (void)std::raise(signal);  // takes effect when the handler returns
  }
}

}  // namespace

void watch_signals(const char* afterwards) {
  text = afterwards;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = note;
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
}

void check_interrupted() {
  if (const int signal = noted.load(); signal != 0) throw Interrupted(signal, text);
}

}  // namespace mxfp4
