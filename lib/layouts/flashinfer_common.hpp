// Shared by the FlashInfer layouts: the row orders of w13, the row shuffle of the TRTLLM
// kernels, and the preconditions.
//
// Sources: vLLM a2c8fc6657 fused_moe/oracle/mxfp4.py; flashinfer 0.6.11.post2 fused_moe/core.py
// (get_w2_permute_indices_with_cache) and utils.py.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/layouts/output.hpp"

namespace mxfp4 {

// Row tables for GatherRows: entry d is the source row of output row d.

// P1, the TRTLLM row shuffle for epilogue tiles of 128: s(d) = 32*(d/32) + 4*(d%8) + (d%32)/8, so
// rows 0..31 take rows 0 4 8 .. 28 | 1 5 .. 29 | 2 6 .. 30 | 3 7 .. 31. `rows` is a multiple of 32.
[[nodiscard]] std::vector<int64_t> trtllm_shuffled_rows(int64_t rows);

// The loaded w13 rows in the order up 0, gate 0, up 1, gate 1, ... for 2I = `rows`:
// gpt_oss s^1; generic I + s/2 for even s, s/2 for odd s.
[[nodiscard]] std::vector<int64_t> up_gate_pairs(Family family, int64_t rows);

// Rows that alternate gate, up as all up rows, then all gate rows, for 2I = `rows`:
// r < I takes 2r + 1, r >= I takes 2(r - I).
[[nodiscard]] std::vector<int64_t> up_half_gate_half(int64_t rows);

// The two halves exchanged, for 2I = `rows`: r takes (r + I) % 2I.
[[nodiscard]] std::vector<int64_t> swapped_halves(int64_t rows);

// H % 128 == 0 and I % 128 == 0. Throws Error::unsupported.
void require_flashinfer_sizes(std::string_view layout_id, const LayerDims& dims);

// Throws Error::unsupported when the layer has no biases (the reference asserts them).
void require_biases(std::string_view layout_id, const LoadedSpec& loaded);

// cutlass-sm90-folded's interleave of a weight of rows x columns bytes (multiples of 16 and 64) in
// plain steps. The outputs run one equal step that is faster.
[[nodiscard]] Program folded_weight_definition(int64_t rows, int64_t columns);

}  // namespace mxfp4
