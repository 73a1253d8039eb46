// A nest of loops, and a walk over it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mxfp4::kernels {

// One nest of loops: axis i has size[i] iterations; a step along it moves the read position by
// in_stride[i] and the write position by out_stride[i], all in units. The last axis is innermost.
struct LoopNest {
  std::vector<int64_t> size;
  std::vector<int64_t> in_stride;
  std::vector<int64_t> out_stride;
};

constexpr size_t kMaxAxes = 32;

// Walks the first `outer` axes and calls body(in_position, out_position), in the nest's units.
template <class Body>
void walk_outer(const LoopNest& nest, size_t outer, Body&& body) {
  std::array<int64_t, kMaxAxes> index{};
  int64_t in_at = 0;
  int64_t out_at = 0;
  while (true) {
    body(in_at, out_at);
    size_t axis = outer;
    while (axis-- > 0) {
      in_at += nest.in_stride[axis];
      out_at += nest.out_stride[axis];
      if (++index[axis] < nest.size[axis]) break;
      in_at -= nest.in_stride[axis] * nest.size[axis];
      out_at -= nest.out_stride[axis] * nest.size[axis];
      index[axis] = 0;
      if (axis == 0) return;
    }
    if (outer == 0) return;
  }
}

template <class Body>
void walk(const LoopNest& nest, Body&& body) {
  walk_outer(nest, nest.size.size(), body);
}

}  // namespace mxfp4::kernels
