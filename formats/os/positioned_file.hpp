// A regular file that several threads read, each at its own offsets. It is not mapped: if another
// process truncates it, reading gives an error, not a signal. After make_direct() the system's page
// cache is neither asked nor filled (O_DIRECT).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <utility>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Fills `out` with the bytes from `offset` on of a file that is not on this machine. Thread-safe.
// Throws Error::input naming the file.
using ReadFar = std::function<void(int64_t offset, MutableBytes out)>;

class PositionedFile {
 public:
  // Throws Error::input, without the path in its text, here and below.
  explicit PositionedFile(const std::filesystem::path& path);
  // The same of an open file, whose descriptor is copied. The two share their flags: after
  // make_direct() the other one is direct, too.
  explicit PositionedFile(int descriptor);
  // Never direct.
  PositionedFile(int64_t size, ReadFar far) : far_(std::move(far)), size_(size) {}
  PositionedFile(PositionedFile&& other) noexcept;
  PositionedFile& operator=(PositionedFile&& other) noexcept;
  ~PositionedFile();

  // Bytes of the file when it was opened.
  [[nodiscard]] int64_t size() const { return size_; }
  // Reads past the page cache from now on, if the file system can. No other thread may use the file
  // meanwhile.
  void make_direct();
  // Advises the system to let go of what its page cache holds of the file. Pages that are mapped or
  // not written yet stay.
  void forget_cached() const;
  // Whether reads pass by the page cache. Becomes false when the file system refuses the first one.
  [[nodiscard]] bool is_direct() const;
  // Bytes of memory that read_direct() needs for `bytes` bytes.
  [[nodiscard]] int64_t direct_room(int64_t bytes) const { return bytes + 3 * alignment_; }
  // `bytes` bytes from `offset` on, which lie somewhere in `memory`. A file that is not direct is
  // read through the page cache. Huge pages make the device's requests larger. Thread-safe.
  [[nodiscard]] ConstBytes read_direct(int64_t offset, int64_t bytes, MutableBytes memory) const;

  // Fills `out` with the bytes from `offset` on. For a file that is not direct. Thread-safe.
  void read(int64_t offset, MutableBytes out) const;
  // Fills `parts`, one after another, with the bytes from `offset` on. Thread-safe.
  void read(int64_t offset, std::span<const MutableBytes> parts) const;

 private:
  void examine();

  int descriptor_ = -1;
  ReadFar far_;  // in place of the descriptor
  int64_t size_ = 0;
  int64_t alignment_ = 1;  // of offsets, sizes and memory of direct reads
};

}  // namespace mxfp4
