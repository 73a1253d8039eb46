// What a schedule reads of one expert's loaded matrix, while it is made: a window that moves along.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

#include "lib/exec/buffer.hpp"

namespace mxfp4 {

// The least bytes of the loaded matrix in the window: so much stays in the second-level cache until
// it is used.
inline constexpr int64_t kWindowBytes = int64_t{128} << 10;
// Bytes that are read behind what is asked for: interleaved rows ask for nearly the same
// bytes twice.
inline constexpr int64_t kReadAhead = int64_t{16} << 10;
// A matrix up to this size is read at once.
inline constexpr int64_t kSmallMatrix = int64_t{1} << 20;

// The part of an expert's loaded matrix that a schedule reads. It goes on from front to back
// mostly; where it jumps about, so that bytes come again and again, the whole matrix is kept.
class InputWindow {
 public:
  using Fill = std::function<void(int64_t begin, int64_t end, std::byte* to)>;

  InputWindow(Buffer& buffer, int64_t size, Fill fill)
      : buffer_(buffer), size_(size), fill_(std::move(fill)) {}

  // The program's BringInput.
  const std::byte* bring(int64_t begin, int64_t end) {
    if (begin < begin_ || end > end_ || data_ == nullptr) move_to(begin, end);
    return data_ + (begin - begin_);
  }

 private:
  void move_to(int64_t begin, int64_t end) {
    int64_t last = std::min(size_, std::max(end, begin + kWindowBytes) + kReadAhead);
    int64_t first = begin;
    if (size_ <= kSmallMatrix || filled_ > 2 * size_) {
      first = 0;
      last = size_;
    }
    int64_t kept = 0;  // that go on, from `first`
    if (data_ != nullptr && first >= begin_ && first < end_ && last > end_) kept = end_ - first;
    if (room_ < last - first) {
      kept = 0;
      room_ = last - first;
      data_ = buffer_.get(room_).data();
    }
    if (kept > 0) std::memmove(data_, data_ + (first - begin_), static_cast<size_t>(kept));
    begin_ = end_ = first;  // in case of an exception
    fill_(first + kept, last, data_ + kept);
    filled_ += last - first - kept;
    end_ = last;
  }

  Buffer& buffer_;
  int64_t size_;
  Fill fill_;
  std::byte* data_ = nullptr;
  int64_t room_ = 0;
  int64_t begin_ = 0;
  int64_t end_ = 0;
  int64_t filled_ = 0;  // bytes so far
};

}  // namespace mxfp4
