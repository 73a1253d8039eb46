// Shapes and tensor descriptions. Tensors are contiguous and row-major, always.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace mxfp4 {

enum class DType : uint8_t;  // dtype.hpp: who names a type includes that

// Numbers in files are little-endian, and are read as they lie there.
static_assert(std::endian::native == std::endian::little);

using ConstBytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// Up to eight non-negative dimensions. Rank 0 is a scalar.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);
  // Throws Error::input when there are more than kMaxRank dimensions or one is negative.
  explicit Shape(std::span<const int64_t> dims);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  [[nodiscard]] std::span<const int64_t> dims() const {
    return {dims_.data(), static_cast<size_t>(rank_)};
  }
  // Number of elements; throws Error::input on overflow.
  [[nodiscard]] int64_t elements() const;
  // "[2, 64, 32]"
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

struct TensorSpec {
  DType dtype{};  // kU8
  Shape shape;

  // Size in bytes. Throws Error::input on overflow, or when a sub-byte type does not fill its last
  // byte.
  [[nodiscard]] int64_t bytes() const;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

// Consecutive bytes of a source's tensor, from `offset` on.
struct Extent {
  size_t tensor = 0;  // its number in the source
  int64_t offset = 0;
  int64_t bytes = 0;
};

}  // namespace mxfp4
