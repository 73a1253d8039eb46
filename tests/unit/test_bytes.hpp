// Bytes for tests: drawn, written out, or those of a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "lib/core/tensor.hpp"

namespace mxfp4::test {

inline std::vector<std::byte> random_bytes(size_t size, uint64_t seed) {
  std::mt19937_64 draw(seed);
  std::vector<std::byte> out(size);
  for (std::byte& b : out) b = static_cast<std::byte>(draw());
  return out;
}

inline std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

inline ConstBytes as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace mxfp4::test
