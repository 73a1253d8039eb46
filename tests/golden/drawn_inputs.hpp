// Loaded tensors drawn from a seed, as the golden digests draw theirs.
//
// Byte stream of a seed: the 64-bit little-endian words mix(seed + (k+1)*0x9E3779B97F4A7C15), k =
// 0, 1, ..., mix being splitmix64's. Each tensor takes the stream of seed*16 + its slot's number.
//   weights        the bytes
//   scales         typical: 112 + (byte & 31); edge: the byte; every: of group g, (g / 8) % 253, and
//                  the codes' magnitudes (as numbers 0 to 7) modulo g % 8 + 1
//   BF16 biases    sign and mantissa as drawn, exponent 120..127; F32 biases: the same, widened
//   input scales   mantissa as drawn, exponent 118..125; uniform: that of expert 0; near: the bits
//                  of expert 0, plus e
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/golden/loaded_layer.hpp"

namespace mxfp4::test {

struct Draw {
  uint64_t seed = 0;
  std::string scale_mode = "typical";
  std::string input_scale_mode = "spread";
};

[[nodiscard]] std::vector<std::byte> drawn_bytes(uint64_t seed, int64_t count);

[[nodiscard]] LoadedLayer drawn_layer(const LoadedSpec& spec, const Draw& draw);

// The layer padded with zeros to larger sizes: w13 rows at the end for gpt_oss, at the end of each
// half for generic; columns at the end.
[[nodiscard]] LoadedLayer padded_layer(const LoadedLayer& layer, Family family, LayerDims dims);

}  // namespace mxfp4::test
