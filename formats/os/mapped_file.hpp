// Read-only maps of large files.
//
// A map is not a copy. If another process truncates the file, the missing pages read as zeros and
// check_truncation throws. A rewrite in place shows in the file's status, so callers compare the
// status before they trust what they read. Replacing the file by rename is harmless: the map keeps
// the old one.
#pragma once

#include <filesystem>

#include "formats/os/file.hpp"
#include "formats/os/truncated_maps.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Advises that these bytes of a map will not be read again soon. The pages leave this process,
// which would otherwise unmap them one by one at its end, in one thread; the system's cache keeps
// them.
void release_pages(ConstBytes mapped) noexcept;

// A regular file mapped read-only; unmapped by the destructor. Movable. It holds no descriptor, so
// that a checkpoint may have more files than a process may open.
class MappedFile {
 public:
  // Throws Error::input, without the path in its text.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] ConstBytes bytes() const { return bytes_; }
  [[nodiscard]] const FileStatus& file() const { return file_; }

 private:
  void unmap() noexcept;

  FileStatus file_;
  ConstBytes bytes_;
  WatchedMap watched_;
};

}  // namespace mxfp4
