#include "formats/source/source.hpp"

#include <fmt/format.h>

#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {

void Source::read(size_t /*index*/, int64_t /*offset*/, MutableBytes /*out*/) {
  throw Error::internal(fmt::format("{}: a source without data", kind()));
}

bool Source::is_far() const { return !tensors().empty() && is_address(tensors().front().file); }

void Source::check_unchanged() const {
  for (const FileStatus& then : files()) {
    in_file(then.path.string(), [&] { require_same(then, describe_file(then.path)); });
  }
}

const SourceTensor& Source::require_range(size_t index, int64_t offset, int64_t size) const {
  const SourceTensor& tensor = contents_.tensors.at(index);
  const int64_t total = tensor.spec.bytes();
  if (offset >= 0 && size >= 0 && offset <= total && size <= total - offset) return tensor;
  throw Error::internal(fmt::format("{}: read of {} bytes at {} of a tensor of {}",
                                    shown(tensor.name), size, offset, total));
}

}  // namespace mxfp4
