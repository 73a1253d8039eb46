// Writes the model directory around a blob: every tensor of a checkpoint except the expert weights,
// and the small files beside them (configuration, tokenizer, generation settings), so that the
// directory serves without the checkpoint. Tensors are copied byte for byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/os/directory.hpp"
#include "formats/os/file.hpp"
#include "formats/source/source.hpp"

namespace mxfp4 {

// Bytes of the largest file of tensors, header included; a larger tensor has a file of its own.
inline constexpr int64_t kMaxRestFile = 5'000'000'000;
// A larger file is not copied. Tokenizers have some 30 MB.
inline constexpr int64_t kMaxSideFile = int64_t{64} << 20;

// rest-NNNNN.safetensors, numbered from 1.
struct RestFile {
  std::string name;
  std::vector<size_t> tensors;  // indices in the source, in file order: wide elements first, which
                                // keeps tensors aligned, else as in the source
  std::string header;
  int64_t data_bytes = 0;
};

// A small file: a copy, or a text that this program makes (config.json, the index).
struct SideFile {
  std::string name;
  std::filesystem::path from;  // empty: `text`
  std::string text;
  int64_t size = 0;
  FileStatus seen{};  // the file of `from`, or behind that link, when it was planned
};

struct RestPlan {
  std::vector<RestFile> files;
  std::vector<SideFile> side;  // includes model.safetensors.index.json
  // The manifest's entries, whose checksums are still empty.
  [[nodiscard]] std::vector<ManifestFile> planned() const;
  [[nodiscard]] int64_t bytes() const;
  // Throws Error::input if a file that is copied is not as it was planned.
  void check_unchanged() const;
};

// `rest` are indices into source.tensors().
[[nodiscard]] RestPlan plan_rest(const Source& source, const std::vector<size_t>& rest,
                                 int64_t max_file = kMaxRestFile);

// The side files of a checkpoint directory, sorted by name: every regular file in it except
// dot-files, weights in any format (.safetensors, .bin, .pt, .pth, .ckpt, .h5, .hdf5, .msgpack,
// .gguf, .onnx, .npz, .zst), their indexes (*.index.json), a blob's manifest, and files larger than
// kMaxSideFile, which `warnings` names. Folders are not entered. Throws Error::input, also for a
// name that a file beside the blob cannot have, and for a link, through which a foreign directory
// could choose which of the user's files is copied. Two kinds of links are followed: to a file of
// the same directory, and from a Hugging Face hub cache's snapshots/ to the same
// repository's blobs/.
[[nodiscard]] std::vector<SideFile> find_side_files(const std::filesystem::path& checkpoint,
                                                    std::vector<std::string>& warnings);

// The same of a far checkpoint, with their texts.
[[nodiscard]] std::vector<SideFile> fetch_side_files(const std::filesystem::path& checkpoint,
                                                     std::vector<std::string>& warnings);

// The entries of the files that write_rest() would write. Calls `between` every few MB. Throws
// Error::input, also if a file is not the one that was planned.
[[nodiscard]] std::vector<ManifestFile> sum_rest(Source& source, const RestPlan& plan,
                                                 const std::function<void()>& between);

struct RestHooks {
  // So many more bytes were written. May throw to stop.
  std::function<void(int64_t)> progress;
  // Whether an earlier run finished the file of this name, and it is still whole.
  std::function<bool(const std::string& name)> kept;
  // Called when a file is complete, before it gets its name; and after.
  std::function<void(const ManifestFile&)> finished;
  std::function<void()> named = [] {};
};

// Writes all files into `directory`, each atomically, in bounded memory. Throws Error::input and
// Error::output.
void write_rest(Source& source, const RestPlan& plan, const Directory& directory,
                const RestHooks& hooks);

}  // namespace mxfp4
