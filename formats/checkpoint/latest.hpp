// Values that several threads use and that take long to make: each is made once, by the thread that
// asks first, while others that ask for it wait. Keeps those that were asked for last.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

namespace mxfp4 {

// Thread-safe. A value that somebody holds lives on when it is no longer kept.
template <class Key, class Value>
class Latest {
 public:
  // Keeps at most `count` values, and at most `bytes` of those that get() was given, but
  // always two.
  explicit Latest(size_t count, size_t bytes = SIZE_MAX) : most_(count), most_bytes_(bytes) {}

  // The value of `key`; if it is not kept, the result of make(), a shared_ptr of `bytes` bytes.
  // What make() throws goes to its caller, and the next one tries again.
  template <class Make>
  std::shared_ptr<const Value> get(const Key& key, size_t bytes, Make&& make) {
    const std::shared_ptr<Kept> kept = entry(key, bytes);
    const std::scoped_lock lock(kept->mutex);
    if (!kept->value) kept->value = std::forward<Make>(make)();
    return kept->value;
  }

 private:
  struct Kept {
    Key key;
    size_t bytes = 0;
    std::mutex mutex{};  // of the value
    std::shared_ptr<const Value> value{};
  };

  std::shared_ptr<Kept> entry(const Key& key, size_t bytes) {
    const std::scoped_lock lock(mutex_);
    const auto found =
        std::ranges::find_if(kept_, [&](const auto& kept) { return kept->key == key; });
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
      return kept_.front();
    }
    kept_.push_front(std::shared_ptr<Kept>(new Kept{key, bytes}));
    bytes_ += bytes;
    while (kept_.size() > 2 && (kept_.size() > most_ || bytes_ > most_bytes_)) {
      bytes_ -= kept_.back()->bytes;
      kept_.pop_back();
    }
    return kept_.front();
  }

  const size_t most_;
  const size_t most_bytes_;
  std::mutex mutex_;                       // of the list
  std::list<std::shared_ptr<Kept>> kept_;  // the latest first
  size_t bytes_ = 0;
};

}  // namespace mxfp4
