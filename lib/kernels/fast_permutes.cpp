#include "lib/kernels/fast_permutes.hpp"

#include <algorithm>
#include <array>

#include "lib/kernels/sm90_interleave.hpp"

namespace mxfp4::kernels {
namespace {

constexpr std::array<int64_t, 10> kSm90Dims = {0, 2, 8, 0, 2, 2, 2, 2, 2, 2};
constexpr std::array<int, 10> kSm90Order = {0, 5, 2, 3, 4, 7, 8, 6, 9, 1};

constexpr FastPermute kFastPermutes[] = {
    {4, kSm90Dims, kSm90Order,
     [](std::span<const int64_t> dims, const std::byte* in, std::byte* out) noexcept {
       sm90_interleave(dims[0], dims[3], in, out);
     },
     [](std::span<const int64_t> dims, const std::byte* in, std::byte* out) noexcept {
       sm90_deinterleave(dims[0], dims[3], in, out);
     }},
};

bool matches(const FastPermute& fast, int64_t unit_bits, std::span<const int64_t> dims,
             std::span<const int> order) {
  const auto fits = [](int64_t pattern, int64_t size) { return pattern == 0 || pattern == size; };
  return fast.unit_bits == unit_bits && std::ranges::equal(fast.dims, dims, fits) &&
         std::ranges::equal(fast.order, order);
}

}  // namespace

const FastPermute* find_fast_permute(int64_t unit_bits, std::span<const int64_t> dims,
                                     std::span<const int> order) {
  for (const FastPermute& fast : kFastPermutes) {
    if (matches(fast, unit_bits, dims, order)) return &fast;
  }
  return nullptr;
}

}  // namespace mxfp4::kernels
