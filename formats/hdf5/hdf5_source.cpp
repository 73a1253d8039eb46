#include "formats/hdf5/hdf5_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/hdf5/hdf5_file.hpp"
#include "formats/hdf5/hdf5_index.hpp"
#include "formats/os/child_process.hpp"
#include "formats/os/positioned_file.hpp"
#include "formats/source/natural_order.hpp"
#include "lib/core/dtype.hpp"
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

// The library's data come through this much memory at a time. Bytes.
constexpr size_t kWindow = size_t{4} << 20;

struct ReadRequest {
  int64_t dataset, offset, size;
};

class Hdf5Source final : public Source {
 public:
  explicit Hdf5Source(const std::filesystem::path& path)
      : name_(path.string()),
        file_(path),
        window_(kWindow),
        child_("the HDF5 library", [this, file = std::shared_ptr<Hdf5File>()](
                                       std::string_view request, const Emit& emit) mutable {
          if (file == nullptr) file = std::make_shared<Hdf5File>(name_);
          if (request.empty()) return emit(encode_hdf5_index(file->list([&] { emit({}); })));
          ReadRequest read{};
          std::memcpy(&read, request.data(), sizeof read);
          file->read(read.dataset, read.offset,
                     window_.bytes().first(static_cast<size_t>(read.size)));
        }) {
    contents_.kind = "hdf5";
    contents_.files.push_back(describe_file(path));
    Hdf5Index index = decode_hdf5_index(child_.ask(""));
    contents_.attributes = std::move(index.attributes);
    check_attribute(contents_.attributes, "format", {"mxfp4-hdf5"});
    check_attribute(contents_.attributes, "version", {"1"});
    check_attribute(contents_.attributes, "layout", {"checkpoint", "loaded"});
    if (auto config = contents_.attributes.extract("config_json"))
      contents_.config_json = std::move(config.mapped());
    if (!index.passed_over.empty()) {
      const std::string others = fmt::format("; {} more such", index.passed_over.size() - 1);
      contents_.warnings.push_back(fmt::format("{}: {}: passed over{}", name_,
                                               index.passed_over.front(),
                                               index.passed_over.size() > 1 ? others : ""));
    }
    datasets_ = std::move(index.datasets);
    std::ranges::sort(datasets_, natural_less, &Hdf5Dataset::name);
    for (const Hdf5Dataset& dataset : datasets_) {
      in_context(shown(dataset.name), [&] {
        dataset.check(file_.size());
        if (!contents_.tensors.empty() && contents_.tensors.back().name == dataset.name) {
          throw Error::input("two datasets have this name");
        }
      });
      contents_.tensors.push_back({.name = dataset.name, .spec = dataset.spec, .file = name_});
    }
  }

  void read(size_t index, int64_t offset, MutableBytes out) override {
    const Hdf5Dataset& dataset = dataset_of(index, offset, std::ssize(out));
    in_context(name_ + ": " + shown(dataset.name), [&] {
      if (dataset.file_offset >= 0) return file_.read(dataset.file_offset + offset, out);
      const std::scoped_lock lock(mutex_);
      while (!out.empty()) {
        const size_t size = std::min(out.size(), kWindow);
        const ReadRequest request{dataset.number, offset, static_cast<int64_t>(size)};
        (void)child_.ask({reinterpret_cast<const char*>(&request), sizeof request});
        std::ranges::copy(window_.bytes().first(size), out.begin());
        out = out.subspan(size);
        offset += static_cast<int64_t>(size);
      }
    });
  }

 private:
  // Whole elements of a dataset.
  const Hdf5Dataset& dataset_of(size_t index, int64_t offset, int64_t size) const {
    const int64_t width = dtype_bytes(require_range(index, offset, size).spec.dtype);
    if (offset % width == 0 && size % width == 0) return datasets_[index];
    throw Error::internal(
        fmt::format("read of {} bytes at {}, elements have {}", size, offset, width));
  }

  std::string name_;
  PositionedFile file_;  // of contiguous datasets
  std::mutex mutex_;
  SharedMemory window_;  // guarded by mutex_, with the child
  ChildProcess child_;
  std::vector<Hdf5Dataset> datasets_;
};

}  // namespace

std::unique_ptr<Source> open_hdf5(const std::filesystem::path& path) {
  return in_file(path.string(), [&] { return std::make_unique<Hdf5Source>(path); });
}

}  // namespace mxfp4
