// A Source whose tensors are byte ranges of mapped files, served without a copy. The reader of such
// a container (safetensors, raw) only has to say where each tensor lies.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "formats/checksum/sha256.hpp"
#include "formats/os/mapped_file.hpp"
#include "formats/source/source.hpp"

namespace mxfp4 {

// Where a reader found the tensors. Every range has been checked against its map.
struct MappedTensors {
  std::vector<MappedFile> maps;
  std::vector<ConstBytes> data;                        // of each tensor
  std::vector<std::optional<Sha256Digest>> checksums;  // of each tensor; empty if none has one
};

class MappedSource final : public Source {
 public:
  MappedSource(SourceContents contents, MappedTensors mapped);

  void read(size_t index, int64_t offset, MutableBytes out) override;
  [[nodiscard]] bool maps(size_t /*index*/) const override { return true; }
  // The first view of a tensor that has a checksum reads the whole tensor and compares.
  [[nodiscard]] ConstBytes view(size_t index, int64_t offset, int64_t size) const override;
  void release(ConstBytes view) const noexcept override { release_pages(view); }

 private:
  // std::call_once would not do: after an exception some implementations wait forever (GCC bug
  // 66146).
  struct Comparison {
    std::mutex mutex;
    std::optional<bool> equal;
  };

  void verify_once(size_t index) const;

  MappedTensors mapped_;
  std::unique_ptr<Comparison[]> comparisons_;  // of each tensor, if there are checksums
};

}  // namespace mxfp4
