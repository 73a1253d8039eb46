// AITER's 4-bit weights in map W and scales in map S: aiter_common.hpp.
//
// AITER_MXFP4_BF16 (w4a16; both families get these bytes at this commit): interleaved gate/up rows
// are put apart in blocks of 16 (map G) first. H = 256, w13 byte (row 3, column 17): G puts row 3 (i =
// 1, g = 1) at r = 17, W gives 1*2048 + 1*256 + 1*16 + 1 = 2321; the scale (3, 5) goes to 0 + 1*64 +
// 1*4 + 1*2 + 1 = 71.
//
// AITER_MXFP4_MXFP4 (w4a4): every row order is kept, so (17, 17) and (17, 5) go there. The sizes must
// be multiples of 256 because the reference pads other scales with uninitialised memory.
#include <fmt/format.h>

#include "lib/core/error.hpp"
#include "lib/layouts/aiter_common.hpp"
#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/slot_outputs.hpp"

namespace mxfp4 {
namespace {

// [E, rows, columns] -> [E rows, columns]
Shape flat(const TensorSpec& spec) { return {spec.shape[0] * spec.shape[1], spec.shape[2]}; }

std::vector<Output> aiter_w4a16_outputs(const LayoutInput& input) {
  const LoadedSpec& loaded = input.loaded;
  require_cdna4_sizes(kAiterW4a16Layout.id, loaded);
  std::vector<Output> result = {
      aiter_weight_output(loaded, Slot::kW13Weight, RowPairs::kSplit),
      aiter_weight_output(loaded, Slot::kW2Weight, RowPairs::kKept),
      aiter_scale_output(loaded, Slot::kW13WeightScale, RowPairs::kSplit,
                         flat(loaded.tensor(Slot::kW13WeightScale))),
      aiter_scale_output(loaded, Slot::kW2WeightScale, RowPairs::kKept,
                         flat(loaded.tensor(Slot::kW2WeightScale))),
  };
  if (loaded.has(Slot::kW13Bias)) {
    Output gates_then_ups = f32_bias_output(loaded, Slot::kW13Bias);
    gates_then_ups.program.then(Permute{Unit::kWord32, {loaded.dims.intermediate_size, 2}, {1, 0}});
    result.push_back(std::move(gates_then_ups));
    result.push_back(f32_bias_output(loaded, Slot::kW2Bias));
  }
  return result;
}

std::vector<Output> aiter_w4a4_outputs(const LayoutInput& input) {
  const LoadedSpec& loaded = input.loaded;
  const int64_t intermediate = loaded.dims.intermediate_size;
  if (intermediate % 256 != 0) {
    throw Error::unsupported(
        fmt::format("layout {}: intermediate size must be a multiple of 256, found {}: the engine "
                    "serves it, but AITER pads its scales with memory that it does not set",
                    kAiterW4a4Layout.id, intermediate));
  }
  require_cdna4_sizes(kAiterW4a4Layout.id, loaded);
  std::vector<Output> result;
  for (Slot slot : {Slot::kW13Weight, Slot::kW2Weight}) {
    result.push_back(aiter_weight_output(loaded, slot, RowPairs::kKept));
  }
  for (Slot slot : {Slot::kW13WeightScale, Slot::kW2WeightScale}) {
    result.push_back(aiter_scale_output(loaded, slot, RowPairs::kKept, loaded.tensor(slot).shape));
  }
  for (Slot slot : {Slot::kW13Bias, Slot::kW2Bias}) {
    if (loaded.has(slot)) result.push_back(f32_bias_output(loaded, slot));
  }
  return result;
}

}  // namespace

const Layout kAiterW4a16Layout = {
    .id = "aiter/w4a16",
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, C] (float4_e2m1fn_x2, is_shuffled)\n"
        "w13_weight_scale, w2_weight_scale: U8 [E*N, S]\n"
        "w13_bias, w2_bias: F32 [E, N], when loaded",
    .formula =
        "w13 row 2i+g -> 32*(i/16) + 16*g + i%16, not in the bias\n"
        "w13_bias row 2i+g -> g*I+i\n"
        "weight byte (r,c): offset (r/16)*16C + (c/16)*256 + (r%16)*16 + c%16\n"
        "scale (r,c): offset (r/32)*32S + (c/8)*256 + (c%4)*64 + (r%16)*4 + ((c/4)%2)*2 + (r/16)%2",
    .preconditions = "H and I multiples of 256",
    .source = "AITER 0.1.13 aiter/ops/shuffle.py; vLLM a2c8fc6657 fused_moe/oracle/mxfp4.py",
    .kernel_library = "AITER 0.1.13",
    .outputs = aiter_w4a16_outputs,
};

const Layout kAiterW4a4Layout = {
    .id = "aiter/w4a4",
    .outputs_doc =
        "w13_weight, w2_weight: U8 [E, N, C] (float4_e2m1fn_x2, is_shuffled)\n"
        "w13_weight_scale, w2_weight_scale: U8 [E, N, S]\n"
        "w13_bias, w2_bias: F32 [E, N], when loaded",
    .formula =
        "weight byte (r,c): offset (r/16)*16C + (c/16)*256 + (r%16)*16 + c%16\n"
        "scale (r,c): offset (r/32)*32S + (c/8)*256 + (c%4)*64 + (r%16)*4 + ((c/4)%2)*2 + "
        "(r/16)%2",
    .preconditions = "H and I multiples of 256",
    .source =
        "AITER 0.1.13 aiter/ops/shuffle.py, aiter/utility/fp4_utils.py; vLLM a2c8fc6657 "
        "fused_moe/oracle/mxfp4.py",
    .kernel_library = "AITER 0.1.13",
    .outputs = aiter_w4a4_outputs,
};

}  // namespace mxfp4
