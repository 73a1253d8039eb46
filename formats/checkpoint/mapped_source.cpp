#include "formats/checkpoint/mapped_source.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {

MappedSource::MappedSource(SourceContents contents, MappedTensors mapped)
    : Source(std::move(contents)), mapped_(std::move(mapped)) {
  if (!mapped_.checksums.empty()) comparisons_ = std::make_unique<Comparison[]>(tensors().size());
}

void MappedSource::read(size_t index, int64_t offset, MutableBytes out) {
  const ConstBytes bytes = view(index, offset, static_cast<int64_t>(out.size()));
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
}

ConstBytes MappedSource::view(size_t index, int64_t offset, int64_t size) const {
  (void)require_range(index, offset, size);
  verify_once(index);
  return mapped_.data[index].subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
}

void MappedSource::verify_once(size_t index) const {
  if (mapped_.checksums.empty() || !mapped_.checksums[index]) return;
  Comparison& comparison = comparisons_[index];
  const std::scoped_lock lock(comparison.mutex);
  if (!comparison.equal) {
    comparison.equal = sha256(mapped_.data[index]) == *mapped_.checksums[index];
  }
  if (*comparison.equal) return;
  const SourceTensor& tensor = tensors()[index];
  throw Error::input(fmt::format("{}: its bytes do not have the sha256 that the manifest states",
                                 shown(tensor.name)))
      .in_file(tensor.file);
}

}  // namespace mxfp4
