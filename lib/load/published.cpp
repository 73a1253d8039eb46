#include "lib/load/published.hpp"

#include <algorithm>

#include "lib/core/checked.hpp"

namespace mxfp4 {

int64_t PublishedLayer::tensor_count() const {
  return checked_mul(std::max<int64_t>(experts, 1), std::ssize(tensors));
}

}  // namespace mxfp4
