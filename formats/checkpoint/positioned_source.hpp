// A safetensors checkpoint that is read, not mapped: for a library in somebody else's process,
// where a map of a file that is cut short would end the process, and which must not install a
// handler for that.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/os/file.hpp"
#include "formats/os/positioned_file.hpp"
#include "formats/source/source.hpp"

namespace mxfp4 {

class PositionedSource final : public Source {
 public:
  // Where a tensor's bytes lie.
  struct Place {
    const PositionedFile* file;  // lives as long as the source
    int64_t offset;
  };

  // `path` as open_source() takes it: a directory or one file. Throws Error::input, also for a container of another kind. Headers are read, and no byte of a map
  // is touched.
  explicit PositionedSource(const std::filesystem::path& path);
  ~PositionedSource() override;

  // Thread-safe.
  void read(size_t index, int64_t offset, MutableBytes out) override;
  void check_unchanged() const override;

  // Opens the tensor's file if that was not done before: a file of which nothing is asked takes no
  // descriptor. Thread-safe. Throws Error::input naming the file, also if its size is another
  // one than when its headers were read.
  [[nodiscard]] Place place_of(size_t index) const;

 private:
  struct OpenedFile;

  std::filesystem::path start_ = current_directory();  // files are opened and looked at later
  std::vector<OpenedFile*> file_of_;                   // by tensor
  std::map<std::string, std::unique_ptr<OpenedFile>> opened_;  // by path
};

}  // namespace mxfp4
