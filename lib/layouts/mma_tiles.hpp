// The tensor-core register tiles that MARLIN and HUMMING share: nibble orders of 32-bit weight
// words and the bias order that goes with them. N = rows, K = columns (e2m1 codes); `/` is integer
// division.
//
// Each function returns the permutation of one expert's matrix [N, K] (or vector [N]).
#pragma once

#include <array>
#include <cstdint>

#include "lib/core/layer.hpp"
#include "lib/steps/step.hpp"

namespace mxfp4 {

// One of a layer's two products: its slots and its size.
struct MoeMatrix {
  Slot weight, scale, bias;
  int64_t n, k;
};
[[nodiscard]] std::array<MoeMatrix, 2> moe_matrices(const LayerDims& dims);

// 16-bit activations, words [K/16, 2N]: code (n, k) is nibble P of word [k / 16][c],
//   c = 128*(n / 64) + 16*(n % 8) + 4*((k % 8) / 2) + (n % 64) / 16
//   P = 4*(k % 2) + 2*((n / 8) % 2) + (k / 8) % 2          (n = 9, k = 3: word [0][20], nibble 6)
// N a multiple of 64, K of 16.
[[nodiscard]] Permute mma_weight_tiles(int64_t n, int64_t k);

// The same with the last two terms of P exchanged: P = 4*(k % 2) + 2*((k / 8) % 2) + (n / 8) % 2
// (n = 9, k = 3: word [0][20], nibble 5).
[[nodiscard]] Permute wgmma_weight_tiles(int64_t n, int64_t k);

// The same words with their nibbles in the order of the tile's registers:
//   P = 4*((n / 8) % 2) + 2*((k / 8) % 2) + k % 2          (n = 9, k = 3: word [0][20], nibble 5)
[[nodiscard]] Permute mma_native_weight_tiles(int64_t n, int64_t k);

// 8-bit activations, words in one flat order of N*K/8: code (n, k) is nibble P of word W,
//   W = 128*((k / 32)*(N / 32) + n / 32) + 16*(n % 8) + 4*((k % 16) / 4) + (n % 32) / 8
//   P = 2*(k % 4) + (k / 16) % 2                           (n = 9, k = 3: word 17, nibble 6)
// N and K multiples of 32.
[[nodiscard]] Permute w8_activation_weight_tiles(int64_t n, int64_t k);

// The same nibbles in words [K/64, 8N], where two tiles that follow in K share a run:
//   word [k / 64][c], c = 128*(n / 16) + 16*(n % 8) + 4*((k % 16) / 4) + 2*((k % 64) / 32) +
//                         (n % 16) / 8                     (n = 9, k = 35: word [0][19], nibble 6)
// N a multiple of 16, K of 64.
[[nodiscard]] Permute w8_activation_packed_k_tiles(int64_t n, int64_t k);

// 4-bit activations, words [K/64, 8N] that keep their codes: code (n, k) is nibble k % 8 of word
//   [k / 64][c], c = 128*(n / 16) + 16*(n % 8) + 4*((k % 32) / 8) + 2*((n % 16) / 8) + (k % 64) / 32
//                                                          (n = 9, k = 35: word [0][19], nibble 3)
// N a multiple of 16, K of 64.
[[nodiscard]] Permute w4_activation_weight_tiles(int64_t n, int64_t k);

// Biases of 16 bits, runs of 32, an involution: element n goes to
//   c = 32*(n / 32) + 8*((n % 8) / 2) + 2*((n % 32) / 8) + n % 2           (n = 9: c = 3)
// N a multiple of 32.
[[nodiscard]] Permute mma_bias_order(int64_t n);

}  // namespace mxfp4
