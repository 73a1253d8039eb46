// Reads a blob into memory of the caller's with many threads: what stands behind mxfp4_repack.h,
// which states the contract. Files are read, not mapped, so a process that did not ask for it gets
// no signal handler; threads are its own, so that several readers do not share one's number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/blob/seekable_zstd.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/os/positioned_file.hpp"
#include "formats/os/uninitialized_bytes.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Thrown when the caller cancelled a read.
struct Cancelled {};

// Consecutive bytes of one tensor.
struct LoadRequest {
  size_t layer = 0;
  size_t tensor = 0;
  int64_t offset = 0;  // in the tensor
  MutableBytes out;
};

// Bytes of one tensor that one thread reads at a time: of a plain file, or of one frame.
struct LoadPiece {
  size_t tensor = 0;
  int64_t begin = 0;  // in the tensor
  int64_t bytes = 0;
  int64_t offset = 0;                // of a plain file
  const SeekEntry* frame = nullptr;  // of a compressed one
  size_t in_frame = 0;
};

// What a thread needs beside the caller's memory.
struct LoadBuffers {
  UninitializedBytes encoded;
  UninitializedBytes decoded;
};

struct LoadOptions {
  int threads = 1;
  bool verify = false;
  const int32_t* cancel = nullptr;
};

// Immutable once it is open, so thread-safe.
class BlobLoader {
 public:
  // One rank's directory. Throws Error::input naming the file.
  explicit BlobLoader(const std::filesystem::path& directory);

  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  // The manifest's file as it is.
  [[nodiscard]] const std::string& manifest_text() const { return manifest_text_; }
  // The JSON text of a layer file's header.
  [[nodiscard]] const std::string& header_text(size_t layer) const {
    return layers_[layer].header_text;
  }
  // Where a tensor begins in its layer's data.
  [[nodiscard]] int64_t tensor_offset(size_t layer, size_t tensor) const;
  // Bytes of all tensors of a layer.
  [[nodiscard]] int64_t data_bytes(size_t layer) const;

  // The last end of a frame in (begin, begin + limit] of a tensor's bytes, at most the tensor's own;
  // begin + limit where there is none. Needs 0 <= begin < the tensor's bytes and limit > 0.
  [[nodiscard]] int64_t cut_end(size_t layer, size_t tensor, int64_t begin, int64_t limit) const;

  // Cuts bytes [begin, begin + bytes) of a tensor into what is read at a time, at most `limit` bytes
  // each: at the ends of frames, where `limit` lets it. The frames are the blob's.
  [[nodiscard]] std::vector<LoadPiece> pieces(size_t layer, size_t tensor, int64_t begin,
                                              int64_t bytes, int64_t limit) const;
  // Reads a piece of `layer` to `out`, and updates `sum`, if there is one, with it: it has begun at
  // the piece. `check`: of a compressed file's frame. Throws Error::input, without a name.
  void read_piece(size_t layer, const LoadPiece& piece, MutableBytes out, LoadBuffers& buffers,
                  FrameCheck check, ChecksumPart* sum) const;
  // "packed/layer-00003.safetensors: model.layers.3.mlp.experts.w13_weight"
  [[nodiscard]] std::string place(size_t layer, size_t tensor) const;
  // Throws Error::input unless `checksum`, of a whole tensor, is the manifest's.
  void compare(size_t layer, size_t tensor, const std::string& checksum) const;

  // Requests lie within their tensors. Throws Error::input naming file and tensor, Error::usage
  // when a part of a plain tensor is to be verified, Cancelled.
  void read(std::span<const LoadRequest> requests, const LoadOptions& options) const;

 private:
  struct Layer {
    std::filesystem::path path;
    PositionedFile file;
    int64_t data_start = 0;  // in the decoded file
    std::string header_text = {};
    std::vector<SeekEntry> frames = {};  // of a compressed file
    std::vector<int64_t> offsets = {};   // of the tensors, and of their end, from data_start on
  };
  class Reading;

  static Layer open_layer(const std::filesystem::path& path, const ManifestLayer& stated);
  bool read_straight(const Layer& layer, const LoadPiece& piece, MutableBytes out,
                     LoadBuffers& buffers, FrameCheck check, ChecksumPart* sum) const;
  void decode(const Layer& layer, const LoadPiece& piece, MutableBytes out, LoadBuffers& buffers,
              FrameCheck check) const;

  std::string manifest_text_;
  Manifest manifest_;
  std::vector<Layer> layers_;
};

}  // namespace mxfp4
