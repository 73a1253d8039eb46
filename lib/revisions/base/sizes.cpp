// Sizes of vLLM 0.21.0: fused_moe/oracle/mxfp4.py
// (mxfp4_round_up_hidden_size_and_intermediate_size) and the
// maybe_roundup_layer_hidden_size of fused_moe/prepare_finalize/*.py.
#include <vector>

#include "lib/revisions/base/tables.hpp"

namespace mxfp4::base {
namespace {

using enum Backend;

template <Backend... kBackends>
bool is_one_of(const Target& target) {
  return ((target.backend == kBackends) || ...);
}

}  // namespace

std::vector<All2AllHiddenRow> all2all_hidden() {
  static const std::vector<int64_t> kSizes = {2048, 2560, 3072, 4096, 5120, 6144, 7168, 8192};
  return {
      {"deepep_high_throughput", 256},  // 512 bytes of bf16
      {"deepep_low_latency", 1, kSizes},
      {"nixl_ep", 1, kSizes},
  };
}

std::vector<RoundingRow> rounding() {
  return {
      // A model's own kernel reads the sizes of the model: no rule of the oracle's rounds them.
      {{"DEEP_GEMM_MEGA_MOE", is_one_of<DEEP_GEMM_MEGA_MOE>}, 1, 1},
      {{"DEEPGEMM_MXFP4", is_one_of<DEEPGEMM_MXFP4>}, 128, 128},
      // The row of 0.32.0's oracle. Before, it counts for a forced backend: the methods that take
      // these kernels round nothing.
      {{"CUTLASS_MXFP4_MXFP4", [](const Target& t) { return t.backend == CUTLASS_MXFP4_MXFP4; }},
       128,
       128},
      {{"MARLIN or BATCHED_MARLIN on xpu",
        [](const Target& t) {
          return is_one_of<MARLIN, BATCHED_MARLIN>(t) && t.platform == Platform::kXpu;
        }},
       128,
       128},
      {{"MARLIN or BATCHED_MARLIN", is_one_of<MARLIN, BATCHED_MARLIN>}, 256, 128},
      {{"FLASHINFER_TRTLLM_*",
        is_one_of<FLASHINFER_TRTLLM_MXFP4_BF16, FLASHINFER_TRTLLM_MXFP4_MXFP8>},
       256,
       256},
      {{"FLASHINFER_CUTLASS_*",
        is_one_of<FLASHINFER_CUTLASS_MXFP4_BF16, FLASHINFER_CUTLASS_MXFP4_MXFP8>},
       128,
       128},
      {{"rocm", [](const Target& t) { return t.platform == Platform::kRocm; }}, 256, 256},
      {{"CPU", is_one_of<CPU>}, 32, 32},
      {{}, 1, 64},
  };
}

}  // namespace mxfp4::base
