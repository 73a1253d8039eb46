// Files of a source: their identity (size, mtime), small texts, and read-only maps of large ones.
//
// A map is private to the process but not a copy: if another process truncates the file, the lost
// pages read as zeros and check_lost_pages throws. Source::check_unchanged detects this and every
// rewrite, so callers ask it before they trust a long run; replacing a file by rename is harmless,
// the map keeps the old one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "formats/checkpoint/source.hpp"
#include "formats/os/lost_pages.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Size and mtime of a regular file (symbolic links are followed). Throws Error::input, without the
// path in its text; unreadable, here and below, unless the file is missing or no regular one.
[[nodiscard]] SourceFile describe_file(const std::filesystem::path& path);

// The whole file as text; refuses more than max_bytes before reading. Throws Error::input, without
// the path in its text.
[[nodiscard]] std::string read_text_file(const std::filesystem::path& path, int64_t max_bytes);

// What can be read from a path until its end, which may be a pipe. Throws Error::input as above.
[[nodiscard]] std::string read_text_stream(const std::filesystem::path& path, int64_t max_bytes);

// Advice: these bytes of a map will not be read again soon. The pages stay in the system's cache,
// but not in this process, which would otherwise take them apart at its end, in one thread.
void release_pages(ConstBytes mapped) noexcept;

// The checksum (checksum.hpp) of bytes of a map; their pages are released on the way. `between`,
// where given, is called every few MB and may throw.
[[nodiscard]] std::string checksum_of_mapped(ConstBytes mapped,
                                             const std::function<void()>& between = {});

// A regular file mapped read-only; unmapped by the destructor. Movable. The path is not kept open,
// so that a checkpoint of hundreds of files needs no descriptors.
class MappedFile {
 public:
  // Throws Error::input, without the path in its text.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] ConstBytes bytes() const { return bytes_; }
  [[nodiscard]] const SourceFile& file() const { return file_; }

 private:
  void unmap() noexcept;

  SourceFile file_;
  ConstBytes bytes_;
  WatchedMap watched_;
};

}  // namespace mxfp4
