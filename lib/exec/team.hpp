// Threads that are kept from one task to the next: starting a dozen takes as long as reading some
// megabytes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace mxfp4 {

class Team {
 public:
  // `threads`, 1 or more, with the one that calls start(). `enter` is called once by each of the
  // others and must not throw. Where the system gives fewer threads, the team is smaller.
  Team(int threads, const std::function<void()>& enter);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  // Calls `task` in every thread but the caller's, and returns at once. `task` must not throw. The
  // next start(), and the team's end, come after join().
  void start(std::function<void()> task);
  // Returns when all calls have returned.
  void join();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable begins_;
  std::condition_variable ends_;
  std::function<void()> task_;
  uint64_t starts_ = 0;
  size_t working_ = 0;
  bool stopped_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace mxfp4
