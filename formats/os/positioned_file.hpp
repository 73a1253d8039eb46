// A regular file that several threads read at places of their own, without a map: a file that
// another process cuts off gives an error, not a signal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

class PositionedFile {
 public:
  // Throws Error::input, without the path in its text, here and below.
  explicit PositionedFile(const std::filesystem::path& path);
  PositionedFile(PositionedFile&& other) noexcept;
  PositionedFile& operator=(PositionedFile&& other) noexcept;
  ~PositionedFile();

  // When it was opened.
  [[nodiscard]] int64_t size() const { return size_; }
  // Fills `out` with the bytes from `offset` on. Thread-safe.
  void read(int64_t offset, MutableBytes out) const;
  // The same into several places, one after another.
  void read(int64_t offset, std::span<const MutableBytes> parts) const;

 private:
  int descriptor_ = -1;
  int64_t size_ = 0;
};

}  // namespace mxfp4
