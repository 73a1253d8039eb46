#include "lib/exec/team.hpp"

#include <exception>
#include <utility>

#include "lib/exec/wait.hpp"

namespace mxfp4 {

Team::Team(int threads, const std::function<void()>& enter) {
  try {
    while (static_cast<int>(threads_.size()) + 1 < threads) {
      threads_.emplace_back([this, enter] {
        enter();
        work();
      });
    }
  } catch (const std::exception&) {
    // The system has no more threads or memory for them.
  }
}

Team::~Team() {
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
  }
  begins_.notify_all();
  threads_.clear();
}

void Team::start(std::function<void()> task) {
  {
    const std::scoped_lock lock(mutex_);
    task_ = std::move(task);
    working_ = threads_.size();
    ++starts_;
  }
  begins_.notify_all();
}

void Team::join() {
  std::unique_lock lock(mutex_);
  while (working_ > 0) wait(ends_, lock);
}

void Team::work() {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    while (!stopped_ && starts_ == seen) wait(begins_, lock);
    if (stopped_) return;
    seen = starts_;
    lock.unlock();
    task_();
    lock.lock();
    if (--working_ == 0) ends_.notify_one();
  }
}

}  // namespace mxfp4
