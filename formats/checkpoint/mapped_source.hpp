// A Source whose tensors are byte ranges of mapped files, served without a copy. The reader of such
// a container (safetensors, raw) only has to say where each tensor lies.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checksum/sha256.hpp"
#include "formats/os/mapped_file.hpp"
#include "formats/source/source.hpp"

namespace mxfp4 {

// The tensors that a reader found. Every range has been checked against its map.
struct MappedTensors {
  std::string_view kind;  // a literal
  std::vector<MappedFile> maps;
  std::vector<FileStatus> files;
  std::vector<SourceTensor> tensors;
  std::vector<ConstBytes> data;                        // of each tensor
  std::vector<std::optional<Sha256Digest>> checksums;  // of each tensor; empty if none has one
  std::map<std::string, std::string> attributes;
  std::optional<std::string> config_json;
  std::vector<std::string> warnings;
};

class MappedSource final : public Source {
 public:
  explicit MappedSource(MappedTensors content);

  [[nodiscard]] std::string_view kind() const override { return content_.kind; }
  [[nodiscard]] const std::vector<SourceTensor>& tensors() const override {
    return content_.tensors;
  }
  void read(size_t index, int64_t offset, MutableBytes out) override;
  [[nodiscard]] bool maps(size_t /*index*/) const override { return true; }
  // The first view of a tensor that has a checksum reads the whole tensor and compares.
  [[nodiscard]] ConstBytes view(size_t index, int64_t offset, int64_t size) const override;
  void release(ConstBytes view) const noexcept override { release_pages(view); }
  [[nodiscard]] const std::map<std::string, std::string>& attributes() const override {
    return content_.attributes;
  }
  [[nodiscard]] std::optional<std::string> config_json() const override {
    return content_.config_json;
  }
  [[nodiscard]] const std::vector<FileStatus>& files() const override { return content_.files; }
  [[nodiscard]] std::vector<std::string> warnings() const override { return content_.warnings; }

 private:
  // std::call_once would not do: after an exception some implementations wait forever (GCC bug
  // 66146).
  struct Comparison {
    std::mutex mutex;
    std::optional<bool> equal;
  };

  void verify_once(size_t index) const;

  MappedTensors content_;
  std::unique_ptr<Comparison[]> comparisons_;  // of each tensor, if there are checksums
};

}  // namespace mxfp4
