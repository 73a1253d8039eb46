// Shared by the layouts of triton_kernels. The reference views each loaded matrix [E, N, columns]
// transposed, as [E, columns, N], and swizzles it for an arch; we write the storage's memory in
// address order. Values and scales of both projections go through the same two swizzles.
//   std::vector<Output> outputs = triton_outputs(input, kHopperValueSwizzle, kHopperScaleSwizzle);
// Source: vLLM a2c8fc6657 quantization/utils/mxfp4_utils.py, _swizzle_mxfp4; triton_kernels 3.6.0
// tensor.py and tensor_details/layout.py.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/layouts/output.hpp"

namespace mxfp4 {

// A value or scale tensor as a swizzle sees it: N rows of bytes (two codes, or one scale, each).
struct TritonMatrix {
  int64_t experts = 0;
  int64_t rows = 0;     // N
  int64_t columns = 0;  // C or S
};

// How the engine sees a storage of rank 3 beside its bytes in address order.
enum class TritonView : uint8_t {
  kTransposed,       // the last two axes exchanged
  kAsStored,         // as they are
  kWrappedAsStored,  // as they are, and the wrapper claims that shape too
};

// One layout class of triton_kernels.
struct TritonSwizzle {
  std::string_view layout;       // class, "HopperMXValueLayout"
  std::string_view layout_name;  // "HOPPER_VALUE"
  std::vector<std::pair<std::string, int64_t>> kwargs;
  // Appends the steps for one expert and returns the physical row-major shape for all of them:
  // [E, rows, columns], which the engine views transposed, or the storage's own shape if of rank 5.
  Shape (*append)(Program& program, const TritonMatrix& matrix);
  // Bytes that the kernel may read past the end; null: none.
  int64_t (*slack_bytes)(const TritonMatrix& matrix);
  // The engine adds columns of `column_fill` up to a multiple of this before it hands the
  // tensor over.
  int64_t column_multiple = 1;
  std::byte column_fill{0};
  // Whether the layout is made from the tensor's shape. From 3.8 on it is not.
  bool from_shape = true;
  TritonView view = TritonView::kTransposed;
};

// Appends padding of `fill` to rows x columns, if there is any.
void append_padding(Program& program, const TritonMatrix& matrix, int64_t rows, int64_t columns,
                    std::byte fill = std::byte{0});

extern const TritonSwizzle kStridedSwizzle;  // values and scales
extern const TritonSwizzle kHopperValueSwizzle;
extern const TritonSwizzle kHopperScaleSwizzle;
extern const TritonSwizzle kBlackwellValueSwizzle;
extern const TritonSwizzle kBlackwellScaleSwizzle;
extern const TritonSwizzle kCdna4ScaleSwizzle;

// The Hopper value swizzle of rows x columns bytes (multiples of 16 and 32), in plain
// steps. The swizzle itself runs one equal step that is faster.
[[nodiscard]] Program hopper_value_definition(int64_t rows, int64_t columns);

// A weight or scale slot: `first` (whose result is rows x columns bytes an expert), then the
// swizzle.
[[nodiscard]] Output triton_output(const LoadedSpec& loaded, Slot slot, Program first,
                                   int64_t columns, const TritonSwizzle& swizzle);

// Weights and scales swizzled, biases widened to F32, every order kept.
[[nodiscard]] std::vector<Output> triton_outputs(const LayoutInput& input,
                                                 const TritonSwizzle& value,
                                                 const TritonSwizzle& scale);

// The same, after interleaving the two halves of the last axis of each w13 tensor:
//   output index d takes input index (d >> 1) + (d & 1) * (n / 2)      n = 6: 0 3 1 4 2 5
// over the H/2 bytes of a weight row, the H/32 scales of a scale row, and the 2I elements of the
// bias (after widening). So K of w13 is permuted, not its gate and up rows; w2 is untouched.
// Throws Error::unsupported unless H is a multiple of 64.
[[nodiscard]] std::vector<Output> triton_k_interleaved_outputs(std::string_view layout_id,
                                                               const LayoutInput& input,
                                                               const TritonSwizzle& value,
                                                               const TritonSwizzle& scale);

// Weights and scales swizzled and biases widened after interleaving the gate and up rows of w13:
// output row 2i + g takes input row g I + i, g = 0 for gate and 1 for up. w2 is untouched.
[[nodiscard]] std::vector<Output> triton_row_interleaved_outputs(const LayoutInput& input,
                                                                 const TritonSwizzle& value,
                                                                 const TritonSwizzle& scale);

}  // namespace mxfp4
