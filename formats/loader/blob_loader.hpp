// Reads a blob into the caller's memory with many threads. mxfp4_repack.h states the contract.
// Files are read, not mapped: mapping needs a signal handler, which a library must not install.
// Each read has threads of its own, so that several readers do not share one number of threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/blob/seekable_zstd.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/os/positioned_file.hpp"
#include "formats/os/uninitialized_bytes.hpp"
#include "lib/core/tensor.hpp"
#include "lib/exec/buffer.hpp"

namespace mxfp4 {

// Thrown when the caller cancelled a read.
struct Cancelled {};
// Throws it if `cancel`, which may be null, points to another number than 0.
void throw_if_cancelled(const int32_t* cancel);

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
  Buffer direct;  // what direct reads fill
};

struct LoadOptions {
  int threads = 1;
  bool verify = false;
  const int32_t* cancel = nullptr;
};

// Thread-safe: what is opened later, once, does not change what was read before.
class BlobLoader {
 public:
  // One rank's directory. `direct`: bytes of tensors are read past the page cache, where the file
  // system can. Layer files are opened and compared with the manifest now or, if `lazy`, when they are
  // first used: then the functions below throw for a file that is not the manifest's. Throws
  // Error::input naming the file.
  explicit BlobLoader(const std::filesystem::path& directory, bool direct = false,
                      bool lazy = false);

  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  // The text of the manifest's file, unchanged.
  [[nodiscard]] const std::string& manifest_text() const { return manifest_text_; }
  // The JSON text of a layer file's header.
  [[nodiscard]] const std::string& header_text(size_t layer) const {
    return opened(layer).header_text;
  }
  // Whether a layer's file is a row of zstd frames.
  [[nodiscard]] bool is_compressed(size_t layer) const { return !opened(layer).frames.empty(); }
  // Whether bytes of a layer's tensors are read past the page cache.
  [[nodiscard]] bool is_direct(size_t layer) const { return opened(layer).file.is_direct(); }
  // Whether a request is a whole tensor, which has a checksum in the manifest.
  [[nodiscard]] bool is_whole(const LoadRequest& request) const;
  // Throws Error::usage, naming file and tensor, for a part that has no checksum to verify.
  void check_verifiable(const LoadRequest& request) const;
  // Where a tensor begins in its layer's data.
  [[nodiscard]] int64_t tensor_offset(size_t layer, size_t tensor) const;
  // Bytes of all tensors of a layer.
  [[nodiscard]] int64_t data_bytes(size_t layer) const;

  // Where a piece of a tensor that starts at byte `begin` and has at most `limit` bytes best ends:
  // at the tensor's end or the last frame's end that `limit` reaches, else at begin + limit. Needs
  // 0 <= begin < the tensor's bytes and limit > 0.
  [[nodiscard]] int64_t cut_end(size_t layer, size_t tensor, int64_t begin, int64_t limit) const;

  // Cuts bytes [begin, begin + bytes) of a tensor into pieces of at most `limit` bytes, none of
  // which lies in two frames. LoadPiece::frame points into this loader.
  [[nodiscard]] std::vector<LoadPiece> pieces(size_t layer, size_t tensor, int64_t begin,
                                              int64_t bytes, int64_t limit) const;
  // Reads a piece of `layer` to `out`. `sum`, if not null, has begun at the piece and is updated
  // with its bytes. `check` applies to a compressed file's frame. Throws Error::input, which names
  // neither file nor tensor.
  void read_piece(size_t layer, const LoadPiece& piece, MutableBytes out, LoadBuffers& buffers,
                  FrameCheck check, ChecksumPart* sum) const;
  // "packed/layer-00003.safetensors: model.layers.3.mlp.experts.w13_weight"
  [[nodiscard]] std::string place(size_t layer, size_t tensor) const;
  // Throws InputFault unless `checksum`, of a whole tensor, is the manifest's.
  void compare(size_t layer, size_t tensor, const std::string& checksum) const;

  // Requests must lie within their tensors. Throws Error::input naming file and tensor,
  // Error::usage when a part of a plain file's tensor is to be verified, and Cancelled.
  void read(std::span<const LoadRequest> requests, const LoadOptions& options) const;

  // Reads a layer's whole file. Throws InputFault, naming it, unless its checksum is the manifest's.
  void check_file(size_t layer, const LoadOptions& options) const;

 private:
  struct Layer {
    std::filesystem::path path;
    PositionedFile file;
    int64_t data_start = 0;  // in the decoded file
    std::string header_text = {};
    std::vector<SeekEntry> frames = {};  // of a compressed file
    std::vector<int64_t> offsets = {};   // from data_start: of each tensor, then of the data's end
  };
  // A layer, and whether it was opened.
  struct LayerSlot {
    std::once_flag once;
    std::optional<Layer> layer;
  };
  class Reading;

  // Opens the layer's file unless that was done.
  const Layer& opened(size_t layer) const;
  [[nodiscard]] Layer open_layer(const ManifestLayer& stated) const;
  static void read_frame(const PositionedFile& file, const LoadPiece& piece, MutableBytes out,
                         LoadBuffers& buffers, FrameCheck check, ChecksumPart* sum);
  static bool read_straight(const PositionedFile& file, const SeekEntry& entry, MutableBytes out,
                            LoadBuffers& buffers, FrameCheck check, ChecksumPart* sum);

  std::filesystem::path directory_;
  bool direct_ = false;
  std::string manifest_text_;
  Manifest manifest_;
  std::vector<std::unique_ptr<LayerSlot>> layers_;
};

}  // namespace mxfp4
