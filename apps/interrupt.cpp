#include "apps/interrupt.hpp"

#include <atomic>
#include <csignal>

namespace mxfp4 {
namespace {

const char* text = "";
std::atomic<int> noted{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler stores to it");

void note(int signal) { noted.store(signal); }

}  // namespace

void watch_signals(const char* afterwards) {
  text = afterwards;
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = note;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigaction(signal, &action, nullptr);
  }
}

void check_interrupted() {
  if (const int signal = noted.load(); signal != 0) throw Interrupted(signal, text);
}

}  // namespace mxfp4
