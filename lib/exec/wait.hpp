// Waits on a condition variable with nothing but what old C++ libraries have.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <mutex>

namespace mxfp4 {

// As changed.wait(lock), for which GCC 12 asks for a library of its own age (GLIBCXX_3.4.30): wheels
// run with older ones. Like it, it may return without cause.
inline void wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock) noexcept {
  pthread_cond_wait(changed.native_handle(), lock.mutex()->native_handle());
}

}  // namespace mxfp4
