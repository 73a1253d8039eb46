// Shared by the layouts of triton_kernels. The reference views each loaded matrix [E, N, columns]
// transposed, as [E, columns, N], and swizzles it for an arch; we write the storage's memory in
// address order. Values and scales of both projections go through the same two swizzles.
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

// Appends the steps for one expert and returns the physical row-major shape for all of them:
// [E, rows, columns], which the engine views transposed, or the storage's own shape if of rank 5.
using TritonAppend = Shape (*)(Program& program, const TritonMatrix& matrix);

// One layout class of triton_kernels.
struct TritonSwizzle {
  std::string_view layout;       // class, "HopperMXValueLayout"
  std::string_view layout_name;  // "HOPPER_VALUE"
  std::vector<std::pair<std::string, int64_t>> kwargs{};
  TritonAppend append = nullptr;
  // Bytes that the kernel may read past the end; null: none.
  int64_t (*slack_bytes)(const TritonMatrix& matrix) = nullptr;
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

// Values, or scales; kStrided is both.
extern const TritonSwizzle kStrided;
extern const TritonSwizzle kHopperValues;     // padded to multiples of 16 rows and 32 bytes
extern const TritonSwizzle kHopper64Values;   // of 64 and 64
extern const TritonSwizzle kHopper256Values;  // of 256 and 64
extern const TritonSwizzle kHopperScales;
extern const TritonSwizzle kHopperScalesByFour;      // columns padded to a multiple of 4 with 0
extern const TritonSwizzle kHopperScalesByFourOnes;  // with 0x7F
extern const TritonSwizzle kBlackwellValues;
extern const TritonSwizzle kBlackwellScales;
extern const TritonSwizzle kCdna4Scales;
extern const TritonSwizzle kTriton38Values;
extern const TritonSwizzle kTriton38StridedScales;
extern const TritonSwizzle kTriton38Cdna4Scales;
extern const TritonSwizzle kTriton38Gfx1250Scales;

// The Hopper value swizzle of rows x columns bytes (multiples of 16 and 32), in plain
// steps. The swizzle itself runs one equal step that is faster.
[[nodiscard]] Program hopper_value_definition(int64_t rows, int64_t columns);

// How the two halves of w13 are interleaved before the swizzle; w2 never is. A bias has one axis,
// which either way interleaves (after widening).
enum class W13Weave : uint8_t {
  kNone,
  // Index d of the last axis takes (d >> 1) + (d & 1) * (n / 2); n = 6: 0 3 1 4 2 5. So K of w13 is
  // permuted, not its gate and up rows.
  kLastAxis,
  kRows,  // row 2i + g takes row g I + i, g = 0 for gate and 1 for up
};

struct TritonParts {
  const TritonSwizzle& value;
  const TritonSwizzle& scale;
  W13Weave weave;
  int64_t multiple;   // of H and I
  bool input_scales;  // reduced to their maxima, at the end
};

// Weights and scales swizzled, biases widened to F32. Throws Error::unsupported unless the sizes
// are multiples, for kLastAxis H of 64, and unless there are input scales that are asked for.
[[nodiscard]] std::vector<Output> triton_outputs(std::string_view layout_id,
                                                 const LayoutInput& input,
                                                 const TritonParts& parts);

}  // namespace mxfp4
