// A regular file that several threads read, each at its own offsets. It is not mapped: if another
// process truncates it, reading gives an error, not a signal.
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

  // Bytes of the file when it was opened.
  [[nodiscard]] int64_t size() const { return size_; }
  // Fills `out` with the bytes from `offset` on. Thread-safe.
  void read(int64_t offset, MutableBytes out) const;
  // Fills `parts`, one after another, with the bytes from `offset` on. Thread-safe.
  void read(int64_t offset, std::span<const MutableBytes> parts) const;

 private:
  int descriptor_ = -1;
  int64_t size_ = 0;
};

}  // namespace mxfp4
