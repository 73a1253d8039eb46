#include "lib/layouts/mma_tiles.hpp"

namespace mxfp4 {

std::array<MoeMatrix, 2> moe_matrices(const LayerDims& dims) {
  const auto [experts, hidden, inter] = dims;
  return {{
      {Slot::kW13Weight, Slot::kW13WeightScale, Slot::kW13Bias, 2 * inter, hidden},
      {Slot::kW2Weight, Slot::kW2WeightScale, Slot::kW2Bias, hidden, inter},
  }};
}

Permute mma_weight_tiles(int64_t n, int64_t k) {
  // Axes: n / 64, n % 64 / 16, n % 16 / 8, n % 8, k / 16, k % 16 / 8, k % 8 / 2, k % 2.
  return {Unit::kNibble, {n / 64, 4, 2, 8, k / 16, 2, 4, 2}, {4, 0, 3, 6, 1, 7, 2, 5}};
}

Permute wgmma_weight_tiles(int64_t n, int64_t k) {
  return {Unit::kNibble, {n / 64, 4, 2, 8, k / 16, 2, 4, 2}, {4, 0, 3, 6, 1, 7, 5, 2}};
}

Permute mma_native_weight_tiles(int64_t n, int64_t k) {
  return {Unit::kNibble, {n / 64, 4, 2, 8, k / 16, 2, 4, 2}, {4, 0, 3, 6, 1, 2, 5, 7}};
}

Permute w8_activation_weight_tiles(int64_t n, int64_t k) {
  // Axes: n / 32, n % 32 / 8, n % 8, k / 32, k % 32 / 16, k % 16 / 4, k % 4.
  return {Unit::kNibble, {n / 32, 4, 8, k / 32, 2, 4, 4}, {3, 0, 2, 5, 1, 6, 4}};
}

Permute w8_activation_packed_k_tiles(int64_t n, int64_t k) {
  // Axes: n / 16, n % 16 / 8, n % 8, k / 64, k % 64 / 32, k % 32 / 16, k % 16 / 4, k % 4.
  return {Unit::kNibble, {n / 16, 2, 8, k / 64, 2, 2, 4, 4}, {3, 0, 2, 6, 4, 1, 7, 5}};
}

Permute w4_activation_weight_tiles(int64_t n, int64_t k) {
  // Axes: n / 16, n % 16 / 8, n % 8, k / 64, k % 64 / 32, k % 32 / 8.
  return {Unit::kWord32, {n / 16, 2, 8, k / 64, 2, 4}, {3, 0, 2, 5, 1, 4}};
}

Permute mma_bias_order(int64_t n) {
  // Axes: n / 32, n % 32 / 8, n % 8 / 2, n % 2.
  return {Unit::kWord16, {n / 32, 4, 4, 2}, {0, 2, 1, 3}};
}

}  // namespace mxfp4
