#include "formats/hdf5/hdf5_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/hdf5/hdf5_chunks.hpp"
#include "formats/hdf5/hdf5_index.hpp"
#include "formats/hdf5/hdf5_walk.hpp"
#include "formats/os/child_process.hpp"
#include "formats/os/mapped_file.hpp"
#include "formats/source/natural_order.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

void check_attribute(const std::map<std::string, std::string>& attributes, const std::string& key,
                     std::initializer_list<std::string_view> choices) {
  const auto at = attributes.find(key);
  if (at == attributes.end()) return;
  check_choice(fmt::format("attribute {}", key), at->second, choices);
}

class Hdf5Source final : public Source {
 public:
  explicit Hdf5Source(const std::filesystem::path& path) : name_(path.string()), map_(path) {
    files_.push_back(map_.file());
    Hdf5Index index = decode_hdf5_index(
        run_in_child("the HDF5 library", [&](const Emit& emit) { walk_hdf5(name_, emit); }));
    attributes_ = std::move(index.attributes);
    check_attribute(attributes_, "format", {"mxfp4-hdf5"});
    check_attribute(attributes_, "version", {"1"});
    check_attribute(attributes_, "layout", {"checkpoint", "loaded"});
    if (auto config = attributes_.extract("config_json")) config_ = std::move(config.mapped());
    datasets_ = std::move(index.datasets);
    std::ranges::sort(datasets_, natural_less, &Hdf5Dataset::name);
    for (const Hdf5Dataset& dataset : datasets_) {
      in_context(shown(dataset.name), [&] {
        dataset.check(map_.file().size);
        if (!tensors_.empty() && tensors_.back().name == dataset.name) {
          throw Error::input("two datasets have this name");
        }
      });
      tensors_.push_back({.name = dataset.name, .spec = dataset.spec, .file = name_});
    }
  }

  [[nodiscard]] std::string_view kind() const override { return "hdf5"; }
  [[nodiscard]] const std::vector<SourceTensor>& tensors() const override { return tensors_; }
  [[nodiscard]] const std::map<std::string, std::string>& attributes() const override {
    return attributes_;
  }
  [[nodiscard]] std::optional<std::string> config_json() const override { return config_; }
  [[nodiscard]] const std::vector<FileStatus>& files() const override { return files_; }

  void read(size_t index, int64_t offset, MutableBytes out) override {
    const Hdf5Dataset& dataset = datasets_.at(index);
    in_context(name_ + ": " + shown(dataset.name), [&] {
      const auto size = static_cast<int64_t>(out.size());
      check_range(dataset, offset, size);
      if (size == 0) return;
      if (dataset.chunked()) {
        read_hdf5_chunks(map_.bytes(), dataset, index, offset, cache_, out);
      } else {
        const ConstBytes stored = mapped(dataset, offset, size);
        std::memcpy(out.data(), stored.data(), stored.size());
      }
      if (dataset.big_endian) swap_bytes(out, dtype_bytes(dataset.spec.dtype));
    });
  }

  [[nodiscard]] bool maps(size_t index) const override {
    const Hdf5Dataset& dataset = datasets_.at(index);
    return !dataset.chunked() && !dataset.big_endian;
  }

  [[nodiscard]] ConstBytes view(size_t index, int64_t offset, int64_t size) const override {
    if (!maps(index)) return {};
    const Hdf5Dataset& dataset = datasets_[index];
    check_range(dataset, offset, size);
    return mapped(dataset, offset, size);
  }

  void release(ConstBytes view) const noexcept override { release_pages(view); }

 private:
  static void check_range(const Hdf5Dataset& dataset, int64_t offset, int64_t size) {
    const int64_t total = dataset.spec.bytes();
    if (offset < 0 || size < 0 || offset > total || size > total - offset) {
      throw Error::internal(
          fmt::format("read of {} bytes at {} of a tensor of {}", size, offset, total));
    }
    const int64_t width = dtype_bytes(dataset.spec.dtype);
    if (offset % width != 0 || size % width != 0) {
      throw Error::internal(
          fmt::format("read of {} bytes at {}, elements have {}", size, offset, width));
    }
  }

  [[nodiscard]] ConstBytes mapped(const Hdf5Dataset& dataset, int64_t offset, int64_t size) const {
    return map_.bytes().subspan(static_cast<size_t>(dataset.file_offset + offset),
                                static_cast<size_t>(size));
  }

  static void swap_bytes(MutableBytes bytes, int64_t width) {
    const auto step = static_cast<size_t>(width);
    for (size_t at = 0; at < bytes.size(); at += step) {
      std::ranges::reverse(bytes.subspan(at, step));
    }
  }

  std::string name_;
  MappedFile map_;
  std::vector<FileStatus> files_;
  std::map<std::string, std::string> attributes_;
  std::optional<std::string> config_;
  std::vector<Hdf5Dataset> datasets_;
  std::vector<SourceTensor> tensors_;  // of each dataset
  Hdf5ChunkCache cache_;
};

}  // namespace

std::unique_ptr<Source> open_hdf5(const std::filesystem::path& path) {
  return in_file(path.string(), [&] { return std::make_unique<Hdf5Source>(path); });
}

}  // namespace mxfp4
