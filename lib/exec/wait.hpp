// Waits on a condition variable with nothing but what old C++ libraries have.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <mutex>

namespace mxfp4 {

// changed.wait(lock) without the symbol that GCC 12 takes from its own library (GLIBCXX_3.4.30),
// since wheels also run with older libraries. May return without cause, as changed.wait(lock) may.
inline void wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock) noexcept {
  pthread_cond_wait(changed.native_handle(), lock.mutex()->native_handle());
}

}  // namespace mxfp4
