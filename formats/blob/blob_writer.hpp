// Writes a blob: one directory a rank, one file a layer, index and manifest last.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "formats/blob/journal.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/blob/seekable_zstd.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {

// A piece on its way into its file. One of these is reused for piece after piece.
struct OutgoingPiece {
  ConstBytes decoded;
  // With zstd: the frames of `decoded`, checksums of codes still to come.
  std::vector<FrameInfo> frames;
  std::vector<std::byte> compressed;  // the frames' bytes; empty for codes, whose frames are made
                                      // on their way into the file
  int64_t offset = 0;                 // in the file
  ChecksumPart file_sum;
  ChecksumPart tensor_sum;
  bool shared_sum = false;          // file_sum serves the tensor too
  std::vector<std::byte> gathered;  // memory for what is written
};

// Plans the frames of a piece, as its tensor prescribes, and encodes those that are compressed.
void encode_piece(FrameEncoder& encoder, const PlannedTensor& tensor, const Piece& piece,
                  OutgoingPiece& outgoing);

// The bytes before a layer file's data. `layer` needs no checksums yet.
[[nodiscard]] std::string layer_header(const Manifest& manifest, const ManifestLayer& layer);

// Layer files appear under their names only whole. An instance that is destroyed early leaves
// complete layer files at most. Errors: Error::output.
class BlobWriter {
 public:
  // Called for each layer file when it is complete, before it has its name.
  using OnFinished = std::function<void(const FinishedFile&)>;

  // Creates the directories. `common` holds what all ranks share; layers and rank are filled in
  // here. Files that are not `wanted` belong to another shard and never appear. `plan` and `model`
  // outlive the writer.
  BlobWriter(std::filesystem::path directory, const Plan& plan, const ModelLayers& model,
             Manifest common, const std::vector<bool>& wanted, OnFinished on_finished);
  ~BlobWriter();
  BlobWriter(const BlobWriter&) = delete;
  BlobWriter& operator=(const BlobWriter&) = delete;

  // Takes over a file that an earlier run finished; no piece of it may come.
  void keep(size_t file, const FinishedFile& finished);
  // A piece passes three stages. First it gets its place in the file, in file order.
  void place(const Piece& piece, OutgoingPiece& outgoing);
  // Then it is written there and summed. Thread-safe for different pieces.
  void store(const Piece& piece, OutgoingPiece& outgoing);
  // Then its sums go to the file's, in file order; the last piece completes its file.
  void finish(const Piece& piece, const OutgoingPiece& outgoing);
  // Each rank's manifest, of the wanted layers. Error::internal if a planned byte is missing.
  [[nodiscard]] std::vector<Manifest> finish();
  // Bytes on disk of the files finished so far, without those taken over.
  [[nodiscard]] int64_t bytes_written() const { return bytes_written_; }

 private:
  class LayerFile;

  LayerFile& open(size_t file);
  void expect_position(const Piece& piece, int64_t data_bytes) const;
  void finish_file(size_t file);

  std::filesystem::path directory_;
  const Plan& plan_;
  Manifest common_;
  FrameEncoder header_encoder_;
  std::vector<ManifestLayer> layers_;              // by plan file
  std::vector<std::unique_ptr<LayerFile>> files_;  // open ones, by plan file
  std::vector<bool> wanted_;                       // by plan file
  std::vector<bool> done_;                         // by plan file
  OnFinished on_finished_;
  int64_t bytes_written_ = 0;
};

// Every rank's manifest as it will be, except what only the data can tell: checksums and file
// sizes are empty.
[[nodiscard]] std::vector<Manifest> planned_manifests(const Plan& plan, const ModelLayers& model,
                                                      const Manifest& common);

// Writes index and manifest of each rank, the manifest last: from then on the blob is complete. Leaves
// no manifest where one cannot be written.
void write_manifests(const std::filesystem::path& directory,
                     const std::vector<Manifest>& manifests);

// "rank-03-of-08/layer-00001.safetensors": a layer file's name relative to the blob.
[[nodiscard]] std::string name_in_blob(const RankSlice& rank, const std::string& file);

// The manifest entry of a planned file, checksums and file size still empty.
[[nodiscard]] ManifestLayer describe_layer(const Plan& plan, const ModelLayers& model, size_t file,
                                           bool zstd);

}  // namespace mxfp4
