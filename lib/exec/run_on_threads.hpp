// Threads of one read. Each read has threads of its own, so that several readers do not share one
// number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace mxfp4 {

// `Buffers`: what a thread keeps from one job to the next. Calls body(job, buffers) for jobs 0 ..
// count - 1, in this order, on `threads` threads at most, this one included. After an exception no
// further job starts; the first one is thrown.
template <class Buffers, class Body>
void run_on_threads(int threads, size_t count, const Body& body) {
  // Relaxed: it only deals out numbers. What the jobs did is handed over when their threads
  // are joined.
  std::atomic<size_t> next{0};
  const auto take = [&next] { return next.fetch_add(1, std::memory_order_relaxed); };
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      Buffers buffers;
      for (size_t job = take(); job < count; job = take()) body(job, buffers);
    } catch (...) {
      next.store(count, std::memory_order_relaxed);
      const std::scoped_lock lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  const size_t helpers = std::min(static_cast<size_t>(threads), std::max<size_t>(count, 1)) - 1;
  std::vector<std::jthread> running;
  running.reserve(helpers);
  try {
    while (running.size() < helpers) running.emplace_back(work);
  } catch (const std::system_error&) {
    // The system gives no more threads: those that run do the work.
  }
  work();
  running.clear();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace mxfp4
