#include "formats/checkpoint/mapped_source.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "formats/checksum/sha256.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {

MappedSource::MappedSource(MappedTensors content) : content_(std::move(content)) {
  if (!content_.checksums.empty()) {
    comparisons_ = std::make_unique<Comparison[]>(content_.tensors.size());
  }
}

void MappedSource::read(size_t index, int64_t offset, MutableBytes out) {
  const ConstBytes bytes = view(index, offset, static_cast<int64_t>(out.size()));
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
}

ConstBytes MappedSource::view(size_t index, int64_t offset, int64_t size) const {
  const ConstBytes data = content_.data.at(index);
  const auto total = static_cast<int64_t>(data.size());
  if (offset < 0 || size < 0 || offset > total || size > total - offset) {
    throw Error::internal(fmt::format("{}: read of {} bytes at {} of a tensor of {}",
                                      shown(content_.tensors[index].name), size, offset, total));
  }
  verify_once(index);
  return data.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
}

void MappedSource::verify_once(size_t index) const {
  if (content_.checksums.empty() || !content_.checksums[index]) return;
  Comparison& comparison = comparisons_[index];
  const std::scoped_lock lock(comparison.mutex);
  if (!comparison.equal) {
    comparison.equal = sha256(content_.data[index]) == *content_.checksums[index];
  }
  if (*comparison.equal) return;
  const SourceTensor& tensor = content_.tensors[index];
  throw Error::input(fmt::format("{}: its bytes do not have the sha256 that the manifest states",
                                 shown(tensor.name)))
      .in_file(tensor.file);
}

}  // namespace mxfp4
