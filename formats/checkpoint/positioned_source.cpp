#include "formats/checkpoint/positioned_source.hpp"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "formats/checkpoint/other_files.hpp"
#include "formats/checkpoint/safetensors_source.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Source> open_safetensors(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    refuse_hub_name(path);
    return open_safetensors_file(path);
  }
  if (!holds_safetensors(path)) {
    throw Error::input("no *.safetensors here").in_file(path.string());
  }
  return open_checkpoint_directory(path);
}

}  // namespace

struct PositionedSource::OpenedFile {
  explicit OpenedFile(const FileStatus& then) : status(then) {}

  FileStatus status;  // when its header was read
  // Null until the file is open. Release and acquire hand over what was opened.
  std::atomic<const PositionedFile*> ready{nullptr};
  std::mutex mutex;
  std::optional<PositionedFile> file;  // guarded by mutex until it is there, and then immutable
};

PositionedSource::PositionedSource(const fs::path& path)
    : Source(open_safetensors(path)->contents()) {
  for (const FileStatus& file : files()) {
    opened_.emplace(file.path.string(), std::make_unique<OpenedFile>(file));
  }
  for (const SourceTensor& tensor : tensors()) {
    const auto at = opened_.find(tensor.file);
    if (at == opened_.end() || !tensor.file_offset) {
      throw Error::internal(fmt::format("{}: it is not known where its bytes lie", tensor.name));
    }
    file_of_.push_back(at->second.get());
  }
}

PositionedSource::~PositionedSource() = default;

void PositionedSource::read(size_t index, int64_t offset, MutableBytes out) {
  const SourceTensor& tensor = require_range(index, offset, std::ssize(out));
  const Place place = place_of(index);
  in_context(tensor.file, [&] { place.file->read(place.offset + offset, out); });
}

void PositionedSource::check_unchanged() const {
  for (const FileStatus& then : files()) {
    in_file(then.path.string(), [&] { require_same(then, describe_file(start_ / then.path)); });
  }
}

PositionedSource::Place PositionedSource::place_of(size_t index) const {
  OpenedFile& opened = *file_of_[index];
  const int64_t offset = *tensors()[index].file_offset;
  if (const auto* file = opened.ready.load(std::memory_order_acquire)) return {file, offset};
  const std::scoped_lock lock(opened.mutex);
  if (!opened.file) {
    in_file(opened.status.path.string(), [&] {
      PositionedFile file(start_ / opened.status.path);
      if (file.size() != opened.status.size) {
        throw Error::input(fmt::format("changed while it was read: {} bytes, {} when it was opened",
                                       file.size(), opened.status.size));
      }
      opened.file = std::move(file);
    });
    opened.ready.store(&*opened.file, std::memory_order_release);
  }
  return {&*opened.file, offset};
}

}  // namespace mxfp4
