// Shared by the FlashInfer CUTLASS layouts: the interleaves of capability 9.0, the biases, and for
// a w13 that is loaded as gate/up pairs the row order all up, then all gate. Source: vLLM
// a2c8fc6657 fused_moe/oracle/mxfp4.py, gpt_oss converter.
#pragma once

#include "lib/layouts/output.hpp"

namespace mxfp4 {

// The loaded rows of one expert; for w13 reordered to [all up; all gate].
[[nodiscard]] Program cutlass_rows(const LoadedSpec& loaded, Slot slot);

// w13_bias: BF16, [all up; all gate], through float32 and back, which turns every NaN into 0x7FFF
// (an F32 bias is rounded to nearest even on the way). w2_bias: as loaded.
[[nodiscard]] Output cutlass_bias_output(const LoadedSpec& loaded, Slot slot);

// Makes a slot's output of its loaded rows, which `rows` has put in order.
using CutlassOutput = Output (*)(const LoadedSpec& loaded, Slot slot, Program rows);

// The rows as they are.
[[nodiscard]] Output rows_output(const LoadedSpec& loaded, Slot slot, Program rows);
// Block scales in FlashInfer's swizzle of 128 x 4.
[[nodiscard]] Output swizzled_scale_output(const LoadedSpec& loaded, Slot slot, Program rows);

// The six outputs of a gpt_oss layout whose w13 rows become all up, then all gate. Throws
// Error::unsupported unless H and I are multiples of 128 and both biases are there.
[[nodiscard]] std::vector<Output> cutlass_outputs(std::string_view layout_id,
                                                  const LoadedSpec& loaded, CutlassOutput weight,
                                                  CutlassOutput scale);

// The mixed-input interleave of capability 9.0, stated in flashinfer_cutlass_sm90.cpp, after `rows`
// has put the rows in order.
[[nodiscard]] Output sm90_weight_output(const LoadedSpec& loaded, Slot slot, Program rows);
[[nodiscard]] Output sm90_scale_output(const LoadedSpec& loaded, Slot slot, Program rows);
// The interleave of flashinfer 0.6.18 and later, stated in flashinfer_cutlass_folded.cpp.
[[nodiscard]] Output folded_weight_output(const LoadedSpec& loaded, Slot slot, Program rows);
[[nodiscard]] Output folded_scale_output(const LoadedSpec& loaded, Slot slot, Program rows);

// That interleave of a weight of rows x columns bytes (multiples of 16 and 64) in plain steps. The
// outputs run one equal step that is faster.
[[nodiscard]] Program folded_weight_definition(int64_t rows, int64_t columns);

}  // namespace mxfp4
