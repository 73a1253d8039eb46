// Files that appear whole or not at all: a temporary in the same directory, fsync, rename, fsync of
// the directory.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Errors are Error::output naming the target path; Error::input when a mapped file was truncated, so
// that nothing made from them is ever published.
class AtomicFile {
 public:
  // Creates the temporary beside `target`.
  explicit AtomicFile(std::filesystem::path target);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  // Removes the temporary unless commit() succeeded.
  ~AtomicFile();

  void append(ConstBytes bytes);
  // Writes `spans`, one behind another, from `offset` on; where nothing is written stay zeros.
  // Several threads may call it at once, for different bytes.
  void write_at(int64_t offset, std::span<const ConstBytes> spans);
  // Makes the bytes durable and renames the temporary over the target. `before` is called between
  // the two: a record of the file that it writes is there when the file is.
  void commit(const std::function<void()>& before = {});
  [[nodiscard]] int64_t size() const { return size_; }

 private:
  // Removes the temporary, if there is one.
  void discard();
  int64_t write_parts(std::span<iovec> parts, int64_t offset);

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  std::atomic<int64_t> size_ = 0;
};

// Creates an empty file beside `target` that no earlier file, link or other process has the name
// of; returns its descriptor and sets `name`. Throws Error::output naming the target.
[[nodiscard]] int create_temporary(const std::filesystem::path& target, std::string& name);

// Writes a small file atomically.
void write_file_atomically(const std::filesystem::path& target, std::string_view text);

// Creates a directory and its parents.
void make_directories(const std::filesystem::path& directory);

// Removes a file or an empty directory, if it is there.
void remove_file(const std::filesystem::path& path);
// Throws what remove_file() would where the directory lets nothing be removed; changes nothing.
void require_removable(const std::filesystem::path& path);

// Makes renames in `directory` durable.
void sync_directory(const std::filesystem::path& directory);

}  // namespace mxfp4
