// A Source whose tensors are byte ranges of files: safetensors and raw dumps. The reader of such a
// container only has to say where each tensor lies. Files are read, not mapped: a map of a file that
// another process cuts short would end this process.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/checkpoint/latest.hpp"
#include "formats/checksum/sha256.hpp"
#include "formats/os/file.hpp"
#include "formats/os/positioned_file.hpp"
#include "formats/remote/files_at.hpp"
#include "formats/source/source.hpp"

namespace mxfp4 {

class PositionedSource final : public Source {
 public:
  // Where a tensor's bytes lie.
  struct Place {
    std::shared_ptr<const PositionedFile> file;
    int64_t offset;
  };

  // Each tensor has its file_offset, checked against the file's size. `checksums`: of each tensor, as
  // the container states them; empty if none has one. Nothing is opened yet.
  explicit PositionedSource(SourceContents contents,
                            std::vector<std::optional<Sha256Digest>> checksums = {});

  // Thread-safe. The first read of a tensor that has a checksum reads the whole tensor and compares.
  void read(size_t index, int64_t offset, MutableBytes out) override;
  void expect(const Extent& range) const override;
  [[nodiscard]] bool reads_ahead() const override { return reads_ahead_; }
  void check_unchanged() const override;

  // Opens the tensor's file, unless it is one of those that were used last. Thread-safe. Throws
  // Error::input naming the file, also if its size is another one than when its header was read.
  [[nodiscard]] Place place_of(size_t index) const;

 private:
  // std::call_once would not do: after an exception some implementations wait forever (GCC bug
  // 66146).
  struct Comparison {
    std::mutex mutex;
    std::optional<bool> equal;
  };

  void verify_once(size_t index);
  void read_bytes_of(size_t index, int64_t offset, MutableBytes out) const;

  std::shared_ptr<FarSession> far_ = keep_far_files();
  std::filesystem::path start_;  // empty for a far one; files are opened and looked at later
  bool reads_ahead_ = false;
  std::unordered_map<std::string, size_t> file_of_;  // path -> index in files()
  // A checkpoint may have more files than a process may open.
  static constexpr size_t kMostFiles = 256;
  mutable Latest<size_t, PositionedFile> opened_{kMostFiles};
  std::vector<std::optional<Sha256Digest>> checksums_;
  std::unique_ptr<Comparison[]> comparisons_;  // of each tensor, if there are checksums
};

}  // namespace mxfp4
