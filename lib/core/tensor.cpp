#include "lib/core/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/checked.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

Shape::Shape(std::initializer_list<int64_t> dims)
    : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank) {
    throw Error::input(fmt::format("{} dimensions, at most {} are supported", dims.size(),
                                   static_cast<int>(kMaxRank)));
  }
  for (int64_t dim : dims) {
    if (dim < 0) throw Error::input(fmt::format("negative dimension {}", dim));
    dims_[static_cast<size_t>(rank_++)] = dim;
  }
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int64_t dim : dims()) product = checked_mul(product, dim);
  return product;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int64_t dim : dims()) text += fmt::format("{}{}", text.size() == 1 ? "" : ", ", dim);
  return text + "]";
}

bool operator==(const Shape& a, const Shape& b) { return std::ranges::equal(a.dims(), b.dims()); }

int64_t TensorSpec::bytes() const {
  const int64_t bits = checked_mul(shape.elements(), dtype_bits(dtype));
  if (bits % 8 != 0) {
    throw Error::input(
        fmt::format("{} {} does not fill a whole byte", dtype_name(dtype), shape.to_string()));
  }
  return bits / 8;
}

}  // namespace mxfp4
