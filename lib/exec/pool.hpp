// Objects that threads use in turn, each by one thread at a time: only as many are made as are in
// use at once. A thread gets the object that it had before, if that is free: what the object keeps
// from one use to the next then serves the same thread.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace mxfp4 {

template <typename T>
class Pool {
 public:
  explicit Pool(std::function<std::unique_ptr<T>()> make) : make_(std::move(make)) {}

  // Calls body(T&) with an object that no other thread uses meanwhile. Thread-safe. An object whose
  // body threw is not used again.
  template <typename Body>
  void use(Body&& body) {
    std::unique_ptr<T> item = take();
    std::forward<Body>(body)(*item);
    const std::scoped_lock lock(mutex_);
    idle_.push_back({std::this_thread::get_id(), std::move(item)});
  }

 private:
  struct Idle {
    std::thread::id last;  // the thread that used it
    std::unique_ptr<T> item;
  };

  [[nodiscard]] std::unique_ptr<T> take() {
    {
      const std::scoped_lock lock(mutex_);
      if (!idle_.empty()) {
        auto found = std::ranges::find(idle_, std::this_thread::get_id(), &Idle::last);
        if (found == idle_.end()) --found;
        std::unique_ptr<T> item = std::move(found->item);
        idle_.erase(found);
        return item;
      }
    }
    return make_();
  }

  std::function<std::unique_ptr<T>()> make_;
  std::mutex mutex_;
  std::vector<Idle> idle_;
};

}  // namespace mxfp4
