// The tensors of a safetensors file as they are stored: what a serving engine loads beside its
// experts. One "layer", the file, without experts and without checksums; its tensors come in the
// order of their bytes.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/checkpoint/positioned_source.hpp"
#include "formats/loader/load_source.hpp"

namespace mxfp4 {

class StoredLoader final : public LoadSource {
 public:
  // Throws Error::input, naming the file, if it is not a sound safetensors file.
  explicit StoredLoader(const std::filesystem::path& file);
  ~StoredLoader() override;

  [[nodiscard]] int64_t best_piece(size_t layer, size_t tensor) const override;
  [[nodiscard]] bool cuts_anywhere(size_t /*layer*/, size_t /*tensor*/) const override {
    return true;
  }
  [[nodiscard]] std::vector<LoadPiece> pieces(size_t layer, size_t tensor, int64_t begin,
                                              int64_t bytes, int64_t limit) const override;
  void read_piece(size_t layer, const LoadPiece& piece, MutableBytes out, LoadBuffers& buffers,
                  FrameCheck check, ChecksumPart* sum) const override;
  [[nodiscard]] std::string place(size_t layer, size_t tensor) const override;
  void check_unchanged() const override;
  [[noreturn]] void check_file(size_t layer, const LoadOptions& options) const override;

 protected:
  [[nodiscard]] bool reads_ahead() const override { return source_->reads_ahead(); }
  void expect_part(size_t layer, size_t tensor, int64_t begin, int64_t bytes) const override;

 private:
  std::filesystem::path path_;
  std::unique_ptr<PositionedSource> source_;
  std::vector<size_t> stored_;  // by tensor: its number in the source
};

}  // namespace mxfp4
