// Writes a blob: one directory a rank, one file a layer, index and manifest last.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "formats/blob/journal.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/blob/seekable_zstd.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/os/directory.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {

// A piece on its way into its file. Reused for one piece after another.
struct OutgoingPiece {
  ConstBytes decoded;
  // With zstd: the frames of `decoded`. Raw ones get their checksums only in store().
  std::vector<FrameInfo> frames;
  std::vector<std::byte> compressed;  // the bytes of those that are shorter than raw ones
  int64_t offset = 0;                 // in the file
  ChecksumPart file_sum;
  ChecksumPart tensor_sum;
  bool shared_sum = false;          // file_sum serves the tensor too
  std::vector<std::byte> gathered;  // memory for what is written
};

// Plans the frames of a piece, and encodes those that are worth it.
void encode_piece(FrameEncoder& encoder, const PlannedTensor& tensor, const Piece& piece,
                  OutgoingPiece& outgoing);

// Layer files appear under their names only when they are complete, also if the writer is destroyed
// early. Errors: Error::output.
class BlobWriter {
 public:
  // Called for each layer file when it is complete, before it gets its name; and after.
  using OnFinished = std::function<void(const FinishedFile&)>;

  // Creates the ranks' directories in `blob`. `common` holds what all ranks share; the writer
  // adds layers and rank. `plan` must outlive the writer.
  BlobWriter(const Directory& blob, const Plan& plan, const ModelLayers& model, Manifest common,
             OnFinished on_finished, std::function<void()> on_named);
  ~BlobWriter();
  BlobWriter(const BlobWriter&) = delete;
  BlobWriter& operator=(const BlobWriter&) = delete;

  // A piece passes three stages. First it gets its place in the file; call it in file order.
  void place(const Piece& piece, OutgoingPiece& outgoing);
  // Second, it is written there and summed. Thread-safe for different pieces.
  void store(const Piece& piece, OutgoingPiece& outgoing);
  // Third, its sums are added to the file's; call it in file order. The last piece completes the
  // file.
  void finish(const Piece& piece, const OutgoingPiece& outgoing);
  // `wanted`: by plan file, what this run writes. Writes those without data, of ranks without
  // experts. Throws Error::internal if one is incomplete.
  void finish(const std::vector<bool>& wanted);
  // Bytes on disk of the files finished so far, without those taken over.
  [[nodiscard]] int64_t bytes_written() const { return bytes_written_; }

 private:
  class LayerFile;

  LayerFile& open(size_t file);
  void expect_position(const Piece& piece, int64_t data_bytes) const;
  void finish_file(size_t file);

  std::vector<Directory> ranks_;
  const Plan& plan_;
  Manifest common_;
  FrameEncoder header_encoder_;
  std::vector<ManifestLayer> layers_;              // by plan file
  std::vector<std::unique_ptr<LayerFile>> files_;  // open ones, by plan file
  std::vector<bool> done_;                         // by plan file
  OnFinished on_finished_;
  std::function<void()> on_named_;
  int64_t bytes_written_ = 0;
};

// Every rank's manifest as it will be. Only what depends on the data is empty: checksums and sizes
// of files.
[[nodiscard]] std::vector<Manifest> planned_manifests(const Plan& plan, const ModelLayers& model,
                                                      const Manifest& common);

// Writes the index and then the manifest of each rank, which completes the blob.
void write_manifests(const Directory& blob, const std::vector<Manifest>& manifests);

}  // namespace mxfp4
