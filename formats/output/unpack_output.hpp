// The directory to which unpack writes all layers of all ranks, or nothing: without a manifest, no
// file would show that some are missing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/blob/journal.hpp"
#include "formats/os/atomic_file.hpp"
#include "formats/output/output_directory.hpp"

namespace mxfp4 {

class UnpackOutput {
 public:
  // `path` has to be empty or missing, and no place of one of the `inputs`; with `replace` it may
  // hold what this program wrote, which stays until commit(). Throws Error::output if `bytes` do
  // not fit. `between`: see OutputDirectory.
  UnpackOutput(const std::filesystem::path& path, const std::vector<std::filesystem::path>& inputs,
               bool replace, int64_t layer_files, int64_t bytes,
               const std::function<void()>& between);
  UnpackOutput(const UnpackOutput&) = delete;
  UnpackOutput& operator=(const UnpackOutput&) = delete;
  // Without commit(): removes what was written.
  ~UnpackOutput();

  // Where layers are written.
  [[nodiscard]] const Directory& home() const { return directory_.home(); }
  // Call it before each file in home() gets its name.
  void writes(const AtomicFile& file);
  // Call it when everything is written. Returns a line about what could not be removed of the old
  // result; empty if all could.
  std::string commit();

 private:
  void discard() const noexcept;

  OutputDirectory directory_;
  std::vector<std::pair<std::filesystem::path, FileState>> written_;  // relative to home()
  std::unique_ptr<Journal> journal_;
  bool committed_ = false;
};

}  // namespace mxfp4
