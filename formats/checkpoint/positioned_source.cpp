#include "formats/checkpoint/positioned_source.hpp"

#include <fmt/format.h>

#include <utility>

#include "formats/os/uninitialized_bytes.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {

PositionedSource::PositionedSource(SourceContents contents,
                                   std::vector<std::optional<Sha256Digest>> checksums)
    : Source(std::move(contents)),
      start_(is_far() ? std::filesystem::path() : current_directory()),
      reads_ahead_(!files().empty() && reads_ahead_at(start_ / files().back().path)),
      checksums_(std::move(checksums)) {
  for (size_t i = 0; i < files().size(); ++i) file_of_.emplace(files()[i].path.string(), i);
  for (const SourceTensor& tensor : tensors()) {
    if (file_of_.contains(tensor.file) && tensor.file_offset) continue;
    throw Error::internal(fmt::format("{}: it is not known where its bytes lie", tensor.name));
  }
  if (!checksums_.empty()) comparisons_ = std::make_unique<Comparison[]>(tensors().size());
}

void PositionedSource::read(size_t index, int64_t offset, MutableBytes out) {
  (void)require_range(index, offset, std::ssize(out));
  verify_once(index);
  read_bytes_of(index, offset, out);
}

void PositionedSource::read_bytes_of(size_t index, int64_t offset, MutableBytes out) const {
  const Place place = place_of(index);
  in_file(tensors()[index].file, [&] { place.file->read(place.offset + offset, out); });
}

void PositionedSource::check_unchanged() const {
  for (const FileStatus& then : files()) {
    in_file(then.path.string(), [&] { require_same(then, status_at(start_ / then.path)); });
  }
}

void PositionedSource::expect(const Extent& range) const {
  const SourceTensor& tensor = tensors()[range.tensor];
  expect_at(start_ / tensor.file, *tensor.file_offset + range.offset, range.bytes);
}

PositionedSource::Place PositionedSource::place_of(size_t index) const {
  const SourceTensor& tensor = tensors()[index];
  const size_t number = file_of_.at(tensor.file);
  auto file = opened_.get(number, 0, [&] {
    return in_file(tensor.file, [&] {
      const FileStatus& then = files()[number];
      auto opened = std::make_shared<PositionedFile>(file_at(start_ / then.path));
      if (opened->size() == then.size) return opened;
      throw Error::input(fmt::format("changed while it was read: {} bytes, {} when it was opened",
                                     opened->size(), then.size));
    });
  });
  return {std::move(file), *tensor.file_offset};
}

void PositionedSource::verify_once(size_t index) {
  if (checksums_.empty() || !checksums_[index]) return;
  const SourceTensor& tensor = tensors()[index];
  Comparison& comparison = comparisons_[index];
  const std::scoped_lock lock(comparison.mutex);
  if (!comparison.equal) {
    UninitializedBytes memory;
    const auto part = [&](int64_t offset, int64_t bytes) -> ConstBytes {
      memory.resize(static_cast<size_t>(bytes));
      read_bytes_of(index, offset, memory);
      return memory;
    };
    comparison.equal = sha256(tensor.spec.bytes(), part) == *checksums_[index];
  }
  if (*comparison.equal) return;
  throw Error::input(fmt::format("{}: its bytes do not have the sha256 that the manifest states",
                                 shown(tensor.name)))
      .in_file(tensor.file);
}

}  // namespace mxfp4
