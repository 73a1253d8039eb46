#include "lib/core/dtype.hpp"

#include <array>

namespace mxfp4 {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  int64_t bits;
};

// In the order of the enumeration, so that a type is its own index.
constexpr std::array kRows = {
    Row{DType::kU8, "U8", 8},
    Row{DType::kBool, "BOOL", 8},
    Row{DType::kF4, "F4", 4},
    Row{DType::kF6E2M3, "F6_E2M3", 6},
    Row{DType::kF6E3M2, "F6_E3M2", 6},
    Row{DType::kI8, "I8", 8},
    Row{DType::kF8E5M2, "F8_E5M2", 8},
    Row{DType::kF8E4M3, "F8_E4M3", 8},
    Row{DType::kF8E8M0, "F8_E8M0", 8},
    Row{DType::kF8E4M3Fnuz, "F8_E4M3FNUZ", 8},
    Row{DType::kF8E5M2Fnuz, "F8_E5M2FNUZ", 8},
    Row{DType::kI16, "I16", 16},
    Row{DType::kU16, "U16", 16},
    Row{DType::kF16, "F16", 16},
    Row{DType::kBF16, "BF16", 16},
    Row{DType::kI32, "I32", 32},
    Row{DType::kU32, "U32", 32},
    Row{DType::kF32, "F32", 32},
    Row{DType::kC64, "C64", 64},
    Row{DType::kF64, "F64", 64},
    Row{DType::kI64, "I64", 64},
    Row{DType::kU64, "U64", 64},
};

constexpr bool in_enum_order() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<size_t>(kRows[i].dtype) != i) return false;
  }
  return true;
}
static_assert(in_enum_order());

const Row& row(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }

}  // namespace

int64_t dtype_bits(DType dtype) { return row(dtype).bits; }
int64_t dtype_bytes(DType dtype) { return row(dtype).bits / 8; }
std::string_view dtype_name(DType dtype) { return row(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Row& candidate : kRows) {
    if (candidate.name == name) return candidate.dtype;
  }
  return std::nullopt;
}

}  // namespace mxfp4
