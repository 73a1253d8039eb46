// Where the loader's bytes come from. The loader asks for a piece of a final tensor, bytes [begin,
// end) of it, and does not know whether the piece is read from a blob (BlobLoader), made from a
// checkpoint (CheckpointLoader), or lies in a checkpoint's file as it is wanted (StoredLoader):
//
//     pieces(tensor) -- from a blob: file, frame ----------------+
//                    |- from a checkpoint: read, assemble,       +-> the caller's memory, or a slot of
//                    |  slice, pad, layout ----------------------+   the GPU's ring
//                    |- raw: read, assemble, slice; the GPU does the rest (gpu_pass()) ---> the same slot
//                    \- as stored: file -------------------------/
//
// What is common to both, reading requests with many threads into the caller's memory, is here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/blob/seekable_zstd.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/os/uninitialized_bytes.hpp"
#include "lib/core/tensor.hpp"
#include "lib/exec/buffer.hpp"
#include "lib/steps/gather_plan.hpp"

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

// Consecutive bytes of one tensor that one thread reads, or makes, at a time.
struct LoadPiece {
  size_t tensor = 0;
  int64_t begin = 0;  // in the tensor
  int64_t bytes = 0;
  // Bytes that a gpu_pass() is still to make the tensor's from; `begin` among those.
  bool raw = false;
  const SeekEntry* frame = nullptr;  // of a blob's compressed file
  size_t in_frame = 0;
};

// Bytes of a plain read's piece. A GPU's copy engine waits less for the first ones than for
// a frame.
inline constexpr int64_t kPlainPiece = int64_t{1} << 20;

// How a GPU makes a tensor from those of the checkpoint that it comes from, all of their rows and columns.
struct HeldPass {
  // Bytes of a tensor of the checkpoint.
  struct Part {
    std::string_view tensor;
    int64_t tensor_bytes;
    int64_t offset;
    int64_t bytes;
  };
  std::shared_ptr<const GatherPlan> plan;
  int64_t granules = 0;
  std::vector<Part> parts{};  // of the granules, in order
};

struct MakeBuffers;  // of checkpoint_loader.cpp

// What a thread needs beside the caller's memory. Good for every source; kept, it is faster.
struct LoadBuffers {
  UninitializedBytes encoded;
  UninitializedBytes decoded;
  Buffer direct;                      // what direct reads fill
  std::shared_ptr<MakeBuffers> make;  // of a checkpoint
};

struct LoadOptions {
  int threads = 1;
  bool verify = false;
  const int32_t* cancel = nullptr;
};

// One rank's layers. Thread-safe: once it is open, only what is fetched ahead changes.
class LoadSource {
 public:
  LoadSource() = default;
  LoadSource(const LoadSource&) = delete;
  LoadSource& operator=(const LoadSource&) = delete;
  virtual ~LoadSource() = default;

  // Names, types, shapes, and what an engine needs to build its objects around the bytes. Where no
  // checksum is known it is kNoChecksum.
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  [[nodiscard]] const std::string& manifest_text() const { return manifest_text_; }
  // Whether bytes of a layer's tensors are read past the page cache.
  [[nodiscard]] virtual bool is_direct(size_t /*layer*/) const { return false; }
  // Throws Error::usage, naming file and tensor, for a part that has no checksum to verify. Where
  // no checksum is known at all, nothing is compared and nothing refused.
  virtual void check_verifiable(const LoadRequest& /*request*/) const {}
  // Bytes of the pieces that cost least: a frame, a granule, or a plain read's piece.
  [[nodiscard]] virtual int64_t best_piece(size_t layer, size_t tensor) const = 0;
  // Whether a smaller piece costs no more than its share.
  [[nodiscard]] virtual bool cuts_anywhere(size_t layer, size_t tensor) const = 0;
  // How a GPU makes a tensor's granules from raw ones. Null where they are read as they are wanted,
  // or only CPUs can make them. Lives as long as this.
  [[nodiscard]] virtual const GatherPlan* gpu_pass(size_t /*layer*/, size_t /*tensor*/) const {
    return nullptr;
  }
  // How a GPU makes a tensor from what it has of the checkpoint. Lives as long as this. Throws
  // Error::unsupported where only CPUs can make it, or nothing is made. Thread-safe.
  [[nodiscard]] virtual HeldPass held_pass(size_t layer, size_t tensor) const;
  // Cuts bytes [begin, begin + bytes) of a tensor into pieces of at most `limit` bytes, none of
  // which lies in two frames or in parts of two granules. What a piece points to lives as long
  // as this.
  [[nodiscard]] virtual std::vector<LoadPiece> pieces(size_t layer, size_t tensor, int64_t begin,
                                                      int64_t bytes, int64_t limit) const = 0;
  // Reads or makes a piece of `layer` to `out`. `sum`, if not null, has begun at the piece and is
  // updated with its bytes. `check` applies to a compressed file's frame. Throws Error::input,
  // which names neither a blob's file nor the tensor.
  virtual void read_piece(size_t layer, const LoadPiece& piece, MutableBytes out,
                          LoadBuffers& buffers, FrameCheck check, ChecksumPart* sum) const = 0;
  // "packed/layer-00003.safetensors: model.layers.3.mlp.experts.w13_weight": for messages.
  [[nodiscard]] virtual std::string place(size_t layer, size_t tensor) const = 0;
  // Says that read_piece() will be asked for these, in about this order: what lies on another machine
  // is fetched ahead, of the next layer, too, where layers come one after another. Thread-safe.
  void expect(std::span<const LoadRequest> requests) const;
  // After all pieces of a read: throws Error::input, naming the file, if bytes that were read may
  // be another version's than those that were opened.
  virtual void check_unchanged() const = 0;

  // Reads a layer's whole file. Throws InputFault, naming it, unless its checksum is the
  // manifest's, and Error::usage where there is no file.
  virtual void check_file(size_t layer, const LoadOptions& options) const = 0;

  [[nodiscard]] int64_t tensor_bytes(size_t layer, size_t tensor) const {
    return manifest().layers[layer].tensors[tensor].spec.bytes();
  }
  // Whether a request is a whole tensor with a checksum in the manifest.
  [[nodiscard]] bool has_checksum(const LoadRequest& request) const;
  // Throws InputFault unless `checksum`, of a whole tensor, is the manifest's.
  void compare(size_t layer, size_t tensor, const std::string& checksum) const;

  // Requests must lie within their tensors. Throws Error::input naming file and tensor,
  // Error::usage when a part that has no checksum is to be verified, and Cancelled.
  void read(std::span<const LoadRequest> requests, const LoadOptions& options) const;

 protected:
  // Whether it is worth to say what read_piece() will be asked for.
  [[nodiscard]] virtual bool reads_ahead() const = 0;
  // expect_at() of what bytes [begin, begin + bytes) of a tensor are read or made from.
  virtual void expect_part(size_t layer, size_t tensor, int64_t begin, int64_t bytes) const = 0;

  Manifest manifest_;
  std::string manifest_text_;

  // pieces() of bytes that are read or made in granules of `granule` bytes: whole ones, as many as
  // `limit` allows, else no more than the rest of one. Granules of one byte: wherever `limit` ends.
  [[nodiscard]] static std::vector<LoadPiece> cut_granules(size_t tensor, int64_t begin,
                                                           int64_t bytes, int64_t limit,
                                                           int64_t granule);

 private:
  mutable std::mutex expecting_;
  mutable std::optional<size_t> last_layer_;
  // By layer and tensor, since they come in order: whether it is expected, and not asked for whole yet.
  mutable std::map<std::pair<size_t, size_t>, bool> expected_;
};

}  // namespace mxfp4
