// Fetches the bytes that will be read next, beside the work on others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mxfp4::kernels {

// The bytes to be read next, fetched into the second-level cache meanwhile: pieces of `run_bytes`
// bytes at the offsets `runs` from `base`; a negative offset is skipped.
struct Upcoming {
  const std::byte* base = nullptr;  // null: nothing known
  std::span<const int64_t> runs;
  int64_t run_bytes = 0;
};

// Fetches upcoming bytes into the second-level cache; the first level is for the tiles at work.
class Fetcher {
 public:
  explicit Fetcher(const Upcoming& next)
      : base_(next.base),
        run_(next.runs.data()),
        end_(base_ == nullptr ? run_ : run_ + next.runs.size()),
        run_bytes_(next.run_bytes) {}

  // The next kLines lines, or those that are left.
  template <int64_t kLines>
  void fetch() {
    if (left_ >= kLines * kLine) {
      for (int64_t i = 0; i < kLines; ++i) fetch_line(at_ + i * kLine);
      at_ += kLines * kLine;
      left_ -= kLines * kLine;
    } else if (run_ != end_ || left_ > 0) {
      fetch_some(kLines);
    }
  }

 private:
  static constexpr int64_t kLine = 64;

  static void fetch_line(const std::byte* at) { __builtin_prefetch(at, 0, 2); }

  // Moves to a run's end, then on into the next run.
  [[gnu::noinline]] void fetch_some(int64_t lines) {
    while (lines > 0) {
      if (left_ <= 0) {
        if (run_ == end_) return;
        const int64_t run = *run_++;
        if (run < 0) continue;
        at_ = base_ + run;
        left_ = run_bytes_;
      }
      for (; lines > 0 && left_ > 0; --lines, at_ += kLine, left_ -= kLine) fetch_line(at_);
    }
  }

  const std::byte* base_;
  const int64_t* run_;
  const int64_t* end_;
  int64_t run_bytes_;
  const std::byte* at_ = nullptr;
  int64_t left_ = 0;
};

}  // namespace mxfp4::kernels
