// The checksum of a tensor whose pieces arrive in any order.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "formats/checksum/checksum.hpp"

namespace mxfp4 {

class ArrivingSum {
 public:
  // Piece `number`, counted from 0, without gaps once all have arrived. Thread-safe.
  void add(size_t number, ChecksumPart part) {
    const std::scoped_lock lock(mutex_);
    waiting_.emplace(number, std::move(part));
    for (auto at = waiting_.find(next_); at != waiting_.end(); at = waiting_.find(next_)) {
      sum_.append(at->second);
      waiting_.erase(at);
      ++next_;
    }
  }
  // Pieces follow the bytes of `before`.
  void begin(const Checksum& before) { sum_ = before; }
  // Of all pieces, once they have arrived.
  [[nodiscard]] const Checksum& sum() const { return sum_; }

 private:
  std::mutex mutex_;
  std::map<size_t, ChecksumPart> waiting_;
  size_t next_ = 0;
  Checksum sum_;
};

}  // namespace mxfp4
