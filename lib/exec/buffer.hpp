// A reusable, growing piece of memory. Unlike a vector it does not clear what it hands out:
// touching fresh pages costs more than the permutations that fill them.
#pragma once

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
      const size_t rounded = (wanted + kAlignment - 1) / kAlignment * kAlignment;
      memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
      if (!memory_) throw std::bad_alloc();
      capacity_ = rounded;
    }
    return {memory_.get(), wanted};
  }

 private:
  static constexpr size_t kAlignment = 64;
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  size_t capacity_ = 0;
};

}  // namespace mxfp4
