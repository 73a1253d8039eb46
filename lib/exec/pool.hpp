// Objects that threads use in turn, each by one thread at a time: only as many are made as are in
// use at once.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
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
    idle_.push_back(std::move(item));
  }

 private:
  [[nodiscard]] std::unique_ptr<T> take() {
    {
      const std::scoped_lock lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<T> item = std::move(idle_.back());
        idle_.pop_back();
        return item;
      }
    }
    return make_();
  }

  std::function<std::unique_ptr<T>()> make_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> idle_;
};

}  // namespace mxfp4
