#include "lib/kernels/permute.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace mxfp4::kernels {
namespace {

constexpr int64_t kShortAxis = 32;

// The innermost axes, as many as fit, as one table: unit i of a block is read `offset[i]` units
// from the block's start and written at i. Short inner axes would otherwise spend their time in the
// walk.
struct Block {
  static constexpr int64_t kMaxUnits = 1024;
  size_t outer = 0;   // axes that are left to walk
  int64_t units = 1;  // 1: even the innermost axis is too long
  std::array<int64_t, kMaxUnits> offset;
};

Block innermost_block(const LoopNest& nest) {
  Block block;
  block.outer = nest.size.size();
  block.offset[0] = 0;
  while (block.outer > 0 && nest.out_stride[block.outer - 1] == block.units &&
         block.units * nest.size[block.outer - 1] <= Block::kMaxUnits) {
    --block.outer;
    const int64_t repeats = nest.size[block.outer];
    for (int64_t r = 1; r < repeats; ++r) {
      for (int64_t i = 0; i < block.units; ++i) {
        block.offset[static_cast<size_t>(r * block.units + i)] =
            block.offset[static_cast<size_t>(i)] + r * nest.in_stride[block.outer];
      }
    }
    block.units *= repeats;
  }
  return block;
}

// Moves single units of N bytes.
template <size_t N>
void move_units(const LoopNest& nest, const std::byte* in, std::byte* out) {
  if (nest.size.back() < kShortAxis && nest.out_stride.back() == 1) {
    const Block block = innermost_block(nest);
    walk_outer(nest, block.outer, [&](int64_t in_at, int64_t out_at) {
      const std::byte* read = in + in_at * static_cast<int64_t>(N);
      std::byte* write = out + out_at * static_cast<int64_t>(N);
      for (int64_t i = 0; i < block.units; ++i, write += N) {
        std::memcpy(write, read + block.offset[static_cast<size_t>(i)] * static_cast<int64_t>(N),
                    N);
      }
    });
    return;
  }
  const int64_t count = nest.size.back();
  const auto in_step = static_cast<ptrdiff_t>(nest.in_stride.back() * static_cast<int64_t>(N));
  const auto out_step = static_cast<ptrdiff_t>(nest.out_stride.back() * static_cast<int64_t>(N));
  walk_outer(nest, nest.size.size() - 1, [&](int64_t in_at, int64_t out_at) {
    const std::byte* read = in + in_at * static_cast<int64_t>(N);
    std::byte* write = out + out_at * static_cast<int64_t>(N);
    for (int64_t i = 0; i < count; ++i, read += in_step, write += out_step) {
      std::memcpy(write, read, N);
    }
  });
}

void permute_runs(const LoopNest& nest, int64_t run, const std::byte* in, std::byte* out) {
  const int64_t count = nest.size.back();
  walk_outer(nest, nest.size.size() - 1, [&](int64_t in_at, int64_t out_at) {
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(out + (out_at + i * nest.out_stride.back()) * run,
                  in + (in_at + i * nest.in_stride.back()) * run, static_cast<size_t>(run));
    }
  });
}

unsigned nibble(const std::byte* bytes, int64_t at) {
  return (std::to_integer<unsigned>(bytes[at >> 1]) >> ((at & 1) * 4)) & 15U;
}

}  // namespace

void add_loop(LoopNest& nest, int64_t size, int64_t in_stride, int64_t out_stride) {
  if (!nest.size.empty() && nest.in_stride.back() == in_stride * size &&
      nest.out_stride.back() == out_stride * size) {
    nest.size.back() *= size;
    nest.in_stride.back() = in_stride;
    nest.out_stride.back() = out_stride;
    return;
  }
  nest.size.push_back(size);
  nest.in_stride.push_back(in_stride);
  nest.out_stride.push_back(out_stride);
}

LoopNest permutation_nest(const std::vector<int64_t>& dims, const std::vector<int>& order,
                          bool invert) {
  const size_t rank = dims.size();
  std::vector<int64_t> in_stride(rank, 1);
  for (size_t axis = rank; axis-- > 1;) in_stride[axis - 1] = in_stride[axis] * dims[axis];

  // Axes in output order, size-1 axes dropped, axes merged that are neighbours on both sides.
  LoopNest nest;
  for (int axis : order) {
    const auto a = static_cast<size_t>(axis);
    if (dims[a] == 1) continue;
    if (!nest.size.empty() && nest.in_stride.back() == in_stride[a] * dims[a]) {
      nest.size.back() *= dims[a];
      nest.in_stride.back() = in_stride[a];
    } else {
      nest.size.push_back(dims[a]);
      nest.in_stride.push_back(in_stride[a]);
    }
  }
  if (nest.size.empty()) {
    nest.size.push_back(1);
    nest.in_stride.push_back(1);
  }
  nest.out_stride.assign(nest.size.size(), 1);
  for (size_t axis = nest.size.size(); axis-- > 1;) {
    nest.out_stride[axis - 1] = nest.out_stride[axis] * nest.size[axis];
  }
  if (!invert) return nest;

  // The inverse writes what was the input, in ascending order of its addresses.
  std::vector<size_t> by_stride(nest.size.size());
  for (size_t i = 0; i < by_stride.size(); ++i) by_stride[i] = i;
  std::ranges::sort(by_stride,
                    [&](size_t a, size_t b) { return nest.in_stride[a] > nest.in_stride[b]; });
  LoopNest back;
  for (size_t axis : by_stride) {
    back.size.push_back(nest.size[axis]);
    back.in_stride.push_back(nest.out_stride[axis]);
    back.out_stride.push_back(nest.in_stride[axis]);
  }
  return back;
}

void permute_bytes(const LoopNest& nest, int64_t unit_bytes, const std::byte* in,
                   std::byte* out) noexcept {
  // A contiguous innermost axis is one longer unit.
  if (nest.size.back() > 1 && nest.in_stride.back() == 1 && nest.out_stride.back() == 1) {
    LoopNest runs = nest;
    const int64_t run = nest.size.back();
    runs.size.pop_back();
    runs.in_stride.pop_back();
    runs.out_stride.pop_back();
    for (int64_t& stride : runs.in_stride) stride /= run;
    for (int64_t& stride : runs.out_stride) stride /= run;
    if (runs.size.empty()) {
      std::memcpy(out, in, static_cast<size_t>(run * unit_bytes));
      return;
    }
    return permute_bytes(runs, run * unit_bytes, in, out);
  }
  switch (unit_bytes) {
    case 1:
      return move_units<1>(nest, in, out);
    case 2:
      return move_units<2>(nest, in, out);
    case 4:
      return move_units<4>(nest, in, out);
    case 8:
      return move_units<8>(nest, in, out);
    case 16:
      return move_units<16>(nest, in, out);
    default:
      return permute_runs(nest, unit_bytes, in, out);
  }
}

void permute_nibbles(const LoopNest& nest, const std::byte* in, std::byte* out) noexcept {
  if (nest.size.back() < kShortAxis) {
    const Block block = innermost_block(nest);
    walk_outer(nest, block.outer, [&](int64_t in_at, int64_t out_at) {
      std::byte* write = out + (out_at >> 1);
      for (size_t i = 0; i < static_cast<size_t>(block.units); i += 2) {
        *write++ = static_cast<std::byte>(nibble(in, in_at + block.offset[i]) |
                                          nibble(in, in_at + block.offset[i + 1]) << 4);
      }
    });
    return;
  }
  const int64_t count = nest.size.back();
  const int64_t in_step = nest.in_stride.back();
  walk_outer(nest, nest.size.size() - 1, [&](int64_t in_at, int64_t out_at) {
    std::byte* write = out + (out_at >> 1);
    for (int64_t i = 0; i < count; i += 2, in_at += 2 * in_step) {
      *write++ = static_cast<std::byte>(nibble(in, in_at) | nibble(in, in_at + in_step) << 4);
    }
  });
}

void permute_units(const LoopNest& nest, int64_t unit_bits, const std::byte* in,
                   std::byte* out) noexcept {
  if (unit_bits == 4) return permute_nibbles(nest, in, out);
  permute_bytes(nest, unit_bits / 8, in, out);
}

}  // namespace mxfp4::kernels
