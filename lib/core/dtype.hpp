// Element types, by the names of the safetensors format (0.7, safetensors/src/tensor.rs).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mxfp4 {

enum class DType : uint8_t {
  kU8,  // first: what a TensorSpec has by itself
  kBool,
  kF4,  // two elements a byte; shapes count elements
  kF6E2M3,
  kF6E3M2,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};

// Bits of one element.
[[nodiscard]] int64_t dtype_bits(DType dtype);
// Bytes of one element; only for types of whole bytes.
[[nodiscard]] int64_t dtype_bytes(DType dtype);
// The safetensors name, for example "BF16".
[[nodiscard]] std::string_view dtype_name(DType dtype);
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name);

}  // namespace mxfp4
