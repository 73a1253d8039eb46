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
  // 32 hex digits, once all pieces have arrived.
  [[nodiscard]] std::string hex() const { return sum_.hex(); }

 private:
  std::mutex mutex_;
  std::map<size_t, ChecksumPart> waiting_;
  size_t next_ = 0;
  Checksum sum_;
};

}  // namespace mxfp4
