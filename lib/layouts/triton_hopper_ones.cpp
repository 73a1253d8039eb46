// TRITON on capability 9.0 where the engine first pads the columns of scales to a multiple of 4
// with 1.0 (0x7F): otherwise the layouts of triton_hopper.cpp, with the values padded by
// triton_kernels to multiples of 64 both ways, or of 256 rows and 64 columns.
//
// Example: H = 2880 has C = 1440, padded 1472, and S = 90, padded 92; a row of w13's output has
// 5888 bytes, and with I = 2880 the second layout pads its 5760 rows to 5888, w2's 2880 to 3072.
#include "lib/core/checked.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/triton_common.hpp"
#include "lib/layouts/triton_layouts.hpp"
#include "lib/steps/hopper_value_step.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kOnesColumnMultiple = 64;

template <int64_t kRowMultiple>
Shape triton_hopper_append_padded_value(Program& program, const TritonMatrix& m) {
  const int64_t rows = round_up(m.rows, kRowMultiple);
  const int64_t columns = round_up(m.columns, kOnesColumnMultiple);
  append_padding(program, m, rows, columns);
  program.then(hopper_value_step(rows, columns));
  return {m.experts, rows / 4, 4 * columns};
}

template <int64_t kRowMultiple>
std::vector<Output> triton_hopper_ones_outputs(const LayoutInput& input) {
  TritonSwizzle value = kHopperValueSwizzle;
  value.append = triton_hopper_append_padded_value<kRowMultiple>;
  TritonSwizzle scale = kHopperScaleSwizzle;
  scale.column_multiple = 4;
  scale.column_fill = std::byte{0x7F};
  scale.slack_bytes = nullptr;
  return triton_outputs(input, value, scale);
}

constexpr std::string_view kOnes64Outputs =
    "w13_weight, w2_weight: U8 [E, up(N,64)/4, 4*up(C,64)]\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, up(N,256)/32, 32*up(S,4)]\n"
    "w13_bias, w2_bias: F32 [E, N], when loaded\n"
    "kernel option to set: split_k=1";
constexpr std::string_view kOnes256Outputs =
    "w13_weight, w2_weight: U8 [E, up(N,256)/4, 4*up(C,64)]\n"
    "w13_weight_scale, w2_weight_scale: U8 [E, up(N,256)/32, 32*up(S,4)]\n"
    "w13_bias, w2_bias: F32 [E, N], when loaded\n"
    "kernel option to set: split_k=1";
constexpr std::string_view kOnes64Formula =
    "value byte (n,c), rows and columns padded to multiples of 64 with 0: as triton/hopper\n"
    "scale (n,s), columns padded to a multiple of 4 with 0x7F: as triton/hopper";
constexpr std::string_view kOnes256Formula =
    "value byte (n,c), rows padded to a multiple of 256 and columns of 64 with 0: as "
    "triton/hopper\n"
    "scale (n,s), columns padded to a multiple of 4 with 0x7F: as triton/hopper";

}  // namespace

const Layout kTritonHopper64OnesLayout = {
    .id = "triton/hopper-64-ones",
    .outputs_doc = kOnes64Outputs,
    .formula = kOnes64Formula,
    .preconditions = "none",
    .source =
        "SGLang 0.5.20 layers/quantization/mxfp4.py, _swizzle_mxfp4, and the triton_kernels of "
        "sglang-kernel 0.4.7, layout_details/hopper_value.py, hopper_scale.py",
    .kernel_library = "triton_kernels in sglang-kernel 0.4.7",
    .outputs = triton_hopper_ones_outputs<64>,
};

const Layout kTritonHopper256OnesLayout = {
    .id = "triton/hopper-256-ones",
    .outputs_doc = kOnes256Outputs,
    .formula = kOnes256Formula,
    .preconditions = "none",
    .source =
        "SGLang 0.5.23 layers/quantization/mxfp4.py, _swizzle_mxfp4, and the triton_kernels of "
        "sglang-kernel 0.4.10, layout_details/hopper_value.py, hopper_scale.py",
    .kernel_library = "triton_kernels in sglang-kernel 0.4.10",
    .outputs = triton_hopper_ones_outputs<256>,
};

}  // namespace mxfp4
