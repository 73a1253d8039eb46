// Regular files by path: status (size, mtime) and the text of small ones.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "lib/core/error.hpp"

namespace mxfp4 {

// Whether a path is an address of a file on another machine: it has a scheme, "hf://".
[[nodiscard]] bool is_address(const std::filesystem::path& path);

struct FileStatus {
  std::filesystem::path path;
  int64_t size = 0;      // bytes
  int64_t mtime_ns = 0;  // since the epoch
  // These show that a file was replaced or rewritten though size and mtime are as before.
  int64_t ctime_ns = 0;
  uint64_t device = 0, inode = 0;
  uint32_t mode = 0;  // permissions
  friend bool operator==(const FileStatus&, const FileStatus&) = default;
};

// Size and mtime of a regular file; symbolic links are followed. Throws Error::input, without the
// path in its text. Here and below, the error is_unreadable() unless the file is missing or is not
// a regular file.
[[nodiscard]] FileStatus describe_file(const std::filesystem::path& path);

// The whole file as text; refuses more than max_bytes before reading. Throws Error::input, without
// the path in its text.
[[nodiscard]] std::string read_text_file(const std::filesystem::path& path, int64_t max_bytes);
// The same of a file that was looked at before and may have no link in its place since. Throws
// Error::input if another file is there now, or if it changed.
[[nodiscard]] std::string read_same_file(const FileStatus& then);

// Throws Error::input if a file that was `then` is not the same one, or has changed. The text has
// no path.
void require_same(const FileStatus& then, const FileStatus& now);

// All that can be read from a path, which may be a pipe. Throws Error::input as above.
[[nodiscard]] std::string read_text_stream(const std::filesystem::path& path, int64_t max_bytes);

// A file that is open for reading; closed by the destructor. Errors as above.
class InputFile {
 public:
  // Opening a FIFO waits for a writer only if `wait`. A link at the end of the path is refused
  // unless `follow`.
  explicit InputFile(const std::filesystem::path& path, bool wait = false, bool follow = true);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  [[nodiscard]] int descriptor() const { return descriptor_; }
  // Throws for what is not a regular file.
  [[nodiscard]] FileStatus status() const;
  // Reads at most `size` bytes from where the last call ended, and returns their number; 0 at the
  // end.
  [[nodiscard]] size_t read_some(char* out, size_t size) const;

 private:
  std::filesystem::path path_;
  int descriptor_;
};

// What this process makes from now on may be neither read nor written by the group or by others
// where one of these files may not.
void keep_private(std::span<const FileStatus> files);

// Where the process is: in front of a relative path it leads to the same file later, wherever the
// process is then. Empty where the system does not say.
[[nodiscard]] std::filesystem::path current_directory();

}  // namespace mxfp4
