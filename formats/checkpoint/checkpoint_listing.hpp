// Which files of a folder are a safetensors checkpoint, and where each of its tensors lies. The
// folder may be on a disk or on another machine. The files are those that the reference reads (vLLM
// a2c8fc6657, model_executor/model_loader/{default_loader,weight_utils}.py).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/source/source.hpp"

namespace mxfp4 {

// A safetensors file as far as its header goes.
struct FileFront {
  FileStatus file;
  std::vector<std::byte> bytes;
};

// A folder of files. Errors are Error::input.
class CheckpointFolder {
 public:
  CheckpointFolder() = default;
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;
  virtual ~CheckpointFolder() = default;

  // A file in it, or with "" the folder, for messages and in SourceContents.
  [[nodiscard]] virtual std::filesystem::path place(const std::string& name) const = 0;
  // The names of its *.safetensors, in no order.
  [[nodiscard]] virtual std::vector<std::string> safetensors() const = 0;
  // Whether it lists the file, even as a link that leads nowhere: a broken download leaves such
  // links, and opening one gives an error that says so.
  [[nodiscard]] virtual bool lists(const std::string& name) const = 0;
  // Whether the file is there.
  [[nodiscard]] virtual bool has(const std::string& name) const = 0;
  // The text of a file of at most `most` bytes, and its status.
  [[nodiscard]] virtual std::string text(const std::string& name, int64_t most,
                                         FileStatus& file) = 0;
  // What these files begin with, in their order.
  [[nodiscard]] virtual std::vector<FileFront> fronts(const std::vector<std::string>& names) = 0;
};

inline constexpr std::string_view kSafetensorsSuffix = ".safetensors";

// The name of a checkpoint's index; `consolidated`: beside consolidated*.safetensors.
[[nodiscard]] std::string index_name(bool consolidated);

// A folder's checkpoint: the files that its index names; without an index all
// consolidated*.safetensors, or if there are none, all *.safetensors. (Beside consolidated files,
// the index names them.) Lists all tensors of the files, whether or not the index names them, files
// in the natural order of their names. Reads only headers, index and config.json.
[[nodiscard]] SourceContents list_checkpoint(CheckpointFolder& folder);
// The same of one file, and the config.json beside it if there is one.
[[nodiscard]] SourceContents list_file(CheckpointFolder& folder, const std::string& name);

// Of a file of this machine.
[[nodiscard]] FileFront local_front(const std::filesystem::path& path);

// The bytes of a file that its header takes, by its first kSafetensorsLengthBytes bytes: of a file
// of `size` bytes, but at least kTellingBytes or all of it. A length that no header has counts as 0.
[[nodiscard]] int64_t front_bytes(ConstBytes begin, int64_t size);

}  // namespace mxfp4
