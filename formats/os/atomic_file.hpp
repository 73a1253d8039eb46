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

// Bytes of the longest file name that AtomicFile can write: file systems take 255, and the temporary
// file's name has 12 more than the file's.
inline constexpr size_t kMaxAtomicName = 255 - 12;

// Errors are Error::output naming the target path; Error::input if a mapped file was truncated, so
// that nothing made from its bytes is published.
class AtomicFile {
 public:
  // Creates the temporary beside `target`.
  explicit AtomicFile(std::filesystem::path target);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  // Removes the temporary unless commit() succeeded.
  ~AtomicFile();

  void append(ConstBytes bytes);
  // Writes `spans`, one behind another, from `offset` on. Bytes that are never written are zeros.
  // Several threads may call it at once, for different bytes.
  void write_at(int64_t offset, std::span<const ConstBytes> spans);
  // Makes the bytes durable and renames the temporary over the target. Calls `before` between the
  // two, so that a record of the file which it writes is there before the file.
  void commit(const std::function<void()>& before = {});
  [[nodiscard]] int64_t size() const { return size_; }

 private:
  // Removes the temporary, if there is one.
  void discard();
  int64_t write_parts(std::span<iovec> parts, int64_t offset);

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  // Threads that write at different offsets raise it. The default order: it costs less than their write.
  std::atomic<int64_t> size_ = 0;
};

// Creates an empty file beside `target`, under a name that no other file or link has; sets `name`
// and returns the descriptor. Throws Error::output naming the target.
[[nodiscard]] int create_temporary(const std::filesystem::path& target, std::string& name);

// Writes a small file atomically.
void write_file_atomically(const std::filesystem::path& target, std::string_view text);

// Creates a directory and its parents.
void make_directories(const std::filesystem::path& directory);

// Removes a file or an empty directory, if it is there.
void remove_file(const std::filesystem::path& path);
// Throws as remove_file() would if the directory's permissions forbid removing; changes nothing.
void require_removable(const std::filesystem::path& path);

// Makes renames in `directory` durable.
void sync_directory(const std::filesystem::path& directory);

}  // namespace mxfp4
