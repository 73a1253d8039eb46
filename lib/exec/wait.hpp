// Waits on a condition variable with nothing but what old C++ libraries have.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <mutex>

namespace mxfp4 {

// As changed.wait(lock), which GCC 12 compiles to a symbol of its own library (GLIBCXX_3.4.30):
// wheels also run with older libraries. It may return without cause, as changed.wait(lock) may.
inline void wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock) noexcept {
  pthread_cond_wait(changed.native_handle(), lock.mutex()->native_handle());
}

}  // namespace mxfp4
