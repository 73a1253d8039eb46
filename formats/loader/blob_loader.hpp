// Reads the layers of a blob. mxfp4_repack.h states the contract.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/blob/blob_reader.hpp"
#include "formats/loader/load_source.hpp"
#include "formats/os/file.hpp"

namespace mxfp4 {

// Thread-safe: what is opened later, once, does not change what was read before.
class BlobLoader final : public LoadSource {
 public:
  // One rank's directory. `direct`: bytes of tensors are read past the page cache, where the file
  // system can. Layer files are opened and compared with the manifest now or, if `lazy`, when they
  // are first used: then the functions below throw for a file that is not the manifest's. Throws
  // Error::input naming the file.
  explicit BlobLoader(const std::filesystem::path& directory, bool direct = false,
                      bool lazy = false);

  [[nodiscard]] bool is_direct(size_t layer) const override {
    return opened(layer).file().is_direct();
  }
  // A whole tensor has a checksum, and so has each frame.
  void check_verifiable(const LoadRequest& request) const override;
  [[nodiscard]] int64_t best_piece(size_t layer, size_t tensor) const override;
  [[nodiscard]] bool cuts_anywhere(size_t layer, size_t tensor) const override;
  // LoadPiece::frame points into this loader.
  [[nodiscard]] std::vector<LoadPiece> pieces(size_t layer, size_t tensor, int64_t begin,
                                              int64_t bytes, int64_t limit) const override;
  void read_piece(size_t layer, const LoadPiece& piece, MutableBytes out, LoadBuffers& buffers,
                  FrameCheck check, ChecksumPart* sum) const override;
  [[nodiscard]] std::string place(size_t layer, size_t tensor) const override;
  // Its files have checksums: the system is not asked.
  void check_unchanged() const override {}
  void check_file(size_t layer, const LoadOptions& options) const override;

 protected:
  [[nodiscard]] bool reads_ahead() const override { return reads_ahead_; }
  void expect_part(size_t layer, size_t tensor, int64_t begin, int64_t bytes) const override;

 private:
  struct Layer {
    std::filesystem::path path;
    LayerReader reader;
    std::vector<int64_t> offsets = {};  // from the data's start: of each tensor, then of its end
    [[nodiscard]] const PositionedFile& file() const { return reader.file(); }
    [[nodiscard]] std::span<const SeekEntry> frames() const { return reader.frames(); }
    [[nodiscard]] int64_t data_start() const { return reader.header().data_start; }
  };
  // A layer, and whether it was opened.
  struct LayerSlot {
    std::once_flag once;
    std::optional<Layer> layer;
  };

  // Opens the layer's file unless that was done.
  const Layer& opened(size_t layer) const;
  [[nodiscard]] Layer open_layer(const ManifestLayer& stated) const;
  static void read_frame(const PositionedFile& file, const LoadPiece& piece, MutableBytes out,
                         LoadBuffers& buffers, FrameCheck check, ChecksumPart* sum);
  static bool read_straight(const PositionedFile& file, const SeekEntry& entry, MutableBytes out,
                            FrameCheck check, ChecksumPart* sum);

  std::filesystem::path directory_;
  std::filesystem::path start_;  // empty for a far blob; layers' files may be opened later
  bool direct_ = false;
  bool reads_ahead_ = false;
  std::vector<std::unique_ptr<LayerSlot>> layers_;
};

}  // namespace mxfp4
