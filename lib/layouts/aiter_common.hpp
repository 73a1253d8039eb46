// The tile maps of AITER's CDNA4 kernels, on one expert's matrix (R rows, C weight bytes or S
// scales a row; dst is the byte offset in the expert, / is integer division):
//   map W  dst = (r / 16)*16C + (c / 16)*256 + (r % 16)*16 + (c % 16)
//   map S  dst = (r / 32)*32S + (c / 8)*256 + (c % 4)*64 + (r % 16)*4 + ((c / 4) % 2)*2
//                + ((r / 16) % 2)
//   map G  source row 2i + g -> r = 32(i / 16) + 16g + i % 16, before W or S
// Source: AITER 0.1.13 aiter/ops/shuffle.py (shuffle_weight, shuffle_weight_a16w4,
// shuffle_scale_a16w4) and aiter/utility/fp4_utils.py (e8m0_shuffle). Map S is also triton_kernels'
// CDNA4MXScaleLayout.
#pragma once

#include "lib/layouts/output.hpp"

namespace mxfp4 {

// Whether the rows of w13 are gate/up pairs to be put apart by map G.
enum class RowPairs : uint8_t { kKept, kSplit };

// Map W; rows a multiple of 16 (32 for kSplit), row_bytes of 16.
[[nodiscard]] Permute aiter_weight_tiles(int64_t rows, int64_t row_bytes, RowPairs pairs);
// Map S; rows a multiple of 32, columns of 8.
[[nodiscard]] Permute cdna4_scale_tiles(int64_t rows, int64_t columns, RowPairs pairs);

// Throws Error::unsupported unless H and I are multiples of 256: whole scale tiles in both
// projections.
void require_cdna4_sizes(std::string_view layout_id, const LoadedSpec& loaded);

// A weight through map W, in its loaded shape, with torch dtype and flag as AITER leaves them.
[[nodiscard]] Output aiter_weight_output(const LoadedSpec& loaded, Slot slot, RowPairs pairs);
// A scale through map S; `shape` is how the engine keeps it.
[[nodiscard]] Output aiter_scale_output(const LoadedSpec& loaded, Slot slot, RowPairs pairs,
                                        Shape shape);

}  // namespace mxfp4
