// A blob as the checkpoint that it was made from: the experts' tensors by the checkpoint's own
// names, types and shapes, restored from the layers of all ranks when they are read. So a blob is
// converted again without the checkpoint, in one pass. And one rank's blob as the loaded layout
// from which it was packed. unpack writes either.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/blob/restored_slots.hpp"
#include "formats/source/source.hpp"

namespace mxfp4 {

// The kind of a source that is a blob; Source::origin() names the checkpoint's kind. A tensor's
// file is the checkpoint's; where that was not made of safetensors files, there is one file for
// each layer.
inline constexpr std::string_view kBlobKind = "blob";

struct BlobSource {
  std::unique_ptr<Source> source;
  // What differs from the checkpoint's own tensors, one line each: a layout that keeps other
  // numbers, biases that the engine's loader rounds. A conversion makes the same of them where only
  // biases differ.
  std::vector<std::string> lost{};
  bool exact = true;  // false: a conversion of the source may differ from one of the checkpoint
  bool whole = true;  // false: some tensors cannot be read
  std::vector<ExpertShare> shares{};  // by tensor of the source
  std::vector<RestorePlan> plans{};   // one plan for each distinct layer size
};

// Opens the blob at `path` with all its ranks. Reads manifests, no layer files. Throws Error::input
// for a damaged blob, missing ranks, and blobs of older versions, which do not keep the names.
[[nodiscard]] BlobSource open_blob_source(const std::filesystem::path& path);

// One rank's blob in the loaded layout, without its padding: layer-NNNNN.safetensors of each layer,
// with the slots that the layout gives back. Throws as open_blob_source.
[[nodiscard]] BlobSource open_loaded_source(const std::filesystem::path& directory,
                                            const Manifest& manifest);

// Throws Error::input, as open_blob_source does, unless what the manifests of `path` say of their
// checkpoint fits their layers. Checks nothing if ranks are missing, or in blobs of older versions.
void check_blob_source(const std::filesystem::path& path, const std::vector<Manifest>& manifests);

}  // namespace mxfp4
