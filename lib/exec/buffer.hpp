// A reusable, growing piece of memory. Unlike a vector it does not clear what it hands out:
// touching fresh pages costs more than the permutations that fill them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace mxfp4 {

class Buffer {
 public:
  // `size` bytes of unspecified content, 64-byte aligned; earlier spans of this buffer end here.
  // Throws std::bad_alloc.
  [[nodiscard]] std::span<std::byte> get(int64_t size) {
    const auto wanted = static_cast<size_t>(size);
    if (wanted > capacity_) {
      memory_.reset();
      const size_t alignment = wanted >= kHugePage ? kHugePage : kAlignment;
      const size_t rounded = (wanted + alignment - 1) / alignment * alignment;
      memory_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
      if (!memory_) throw std::bad_alloc();
      // Advice only: one fault for 2 MiB instead of 512.
      if (alignment == kHugePage) (void)::madvise(memory_.get(), rounded, MADV_HUGEPAGE);
      capacity_ = rounded;
    }
    return {memory_.get(), wanted};
  }

 private:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kHugePage = size_t{2} << 20;
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  size_t capacity_ = 0;
};

}  // namespace mxfp4
