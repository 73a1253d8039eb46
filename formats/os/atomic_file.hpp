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

#include "formats/os/directory.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Bytes of the longest file name that AtomicFile can write: file systems take 255, and the
// temporary file's name has 12 more than the file's.
inline constexpr size_t kMaxAtomicName = 255 - 12;

// Errors are Error::output naming the file's path.
class AtomicFile {
 public:
  // Creates the temporary, in the directory.
  AtomicFile(Directory directory, std::string name);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  // Removes the temporary unless commit() succeeded.
  ~AtomicFile();

  void append(ConstBytes bytes);
  // Writes `spans`, one behind another, from `offset` on. Bytes that are never written are zeros.
  // Several threads may call it at once, for different bytes.
  void write_at(int64_t offset, std::span<const ConstBytes> spans);
  // Makes the bytes durable and gives the temporary its name. Calls `before` between the two, so
  // that a record of the file which it writes is there before the file.
  void commit(const std::function<void()>& before = {});
  [[nodiscard]] int64_t size() const { return size_; }

 private:
  // The path that the file gets.
  [[nodiscard]] std::filesystem::path target() const { return directory_.path() / name_; }
  // Removes the temporary, if there is one.
  void discard();
  int64_t write_parts(std::span<iovec> parts, int64_t offset);

  Directory directory_;
  std::string name_;
  std::string temporary_;  // name
  int descriptor_ = -1;
  // Threads that write at different offsets raise it. The default order: it costs less than
  // their write.
  std::atomic<int64_t> size_ = 0;
};

// Writes a whole small file.
void write_atomically(const Directory& directory, const std::string& name, std::string_view text);

// Creates an empty file that will get the name `target`, under a name that no other file or link
// has; sets `name` and returns the descriptor. Throws Error::output naming the target.
[[nodiscard]] int create_temporary(const Directory& directory, const std::string& target,
                                   std::string& name);

// The errno of a write that did not write: one that wrote nothing at all found no room.
[[nodiscard]] int write_error(ssize_t written);

}  // namespace mxfp4
