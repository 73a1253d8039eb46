// The model directory around a blob: every tensor of a checkpoint that is not expert weights, and
// the small files beside it (configuration, tokenizer, generation settings), so that the directory
// serves without the checkpoint. Bytes are copied, never decoded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/source/source.hpp"

namespace mxfp4 {

// Largest file of tensors, header included; a tensor that is larger has a file of its own.
inline constexpr int64_t kMaxRestFile = 5'000'000'000;
// Tokenizers have some 30 MB; what is larger than this is not configuration.
inline constexpr int64_t kMaxSideFile = int64_t{64} << 20;

// rest-NNNNN.safetensors, numbered from 1.
struct RestFile {
  std::string name;
  std::vector<size_t> tensors;  // of the source, in file order: wide elements first, as aligned
                                // readers need them, else as in the source
  std::string header;
  int64_t data_bytes = 0;
};

// A small file: a copy, or a text that no file holds (config.json of an HDF5 container, the index).
struct SideFile {
  std::string name;
  std::filesystem::path from;  // empty: `text`
  std::string text;
  int64_t size = 0;
};

struct RestPlan {
  std::vector<RestFile> files;
  std::vector<SideFile> side;  // by name; includes model.safetensors.index.json
  // The manifest's entries, checksums of the content still empty.
  [[nodiscard]] std::vector<ManifestFile> planned() const;
  [[nodiscard]] int64_t bytes() const;
};

// `rest` are indices into source.tensors().
[[nodiscard]] RestPlan plan_rest(const Source& source, const std::vector<size_t>& rest,
                                 int64_t max_file = kMaxRestFile);

// The side files of a checkpoint directory: every regular file in it but dot-files, weights in any
// format (.safetensors, .bin, .pt, .pth, .ckpt, .h5, .hdf5, .msgpack, .gguf, .onnx, .npz, .zst),
// their indexes (*.index.json), and what is larger than kMaxSideFile, which `warnings` names.
// Folders are not entered. Throws Error::input, also for a link: who made the directory would
// choose which of the reader's files is copied. Links to a file of the same directory, and those of
// a Hugging Face hub cache, from snapshots/ to the same repository's blobs/, are followed.
[[nodiscard]] std::vector<SideFile> find_side_files(const std::filesystem::path& checkpoint,
                                                    std::vector<std::string>& warnings);

struct RestHooks {
  // Some bytes were written; may throw to stop.
  std::function<void(int64_t)> progress;
  // A file that an earlier run finished and that is still whole.
  std::function<std::optional<ManifestFile>(const std::string& name)> kept;
  // A file is complete, and about to get its name.
  std::function<void(const ManifestFile&)> finished;
};

// Writes all files into `directory`, each atomically, in bounded memory; the entries for the
// manifest. Throws Error::input and Error::output.
[[nodiscard]] std::vector<ManifestFile> write_rest(Source& source, const RestPlan& plan,
                                                   const std::filesystem::path& directory,
                                                   const RestHooks& hooks);

}  // namespace mxfp4
