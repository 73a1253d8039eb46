// Cases in which the converters of vLLM 0.21.0 (fused_moe/oracle/mxfp4.py) end without an error
// and write weights that are wrong for the model. The bytes are reproduced all the same.
#include <algorithm>
#include <array>
#include <vector>

#include "lib/revisions/base/tables.hpp"

namespace mxfp4::base {
namespace {

// The converters that take w13's rows for interleaved gate/up pairs.
constexpr std::array kWantInterleavedRows = {
    Backend::FLASHINFER_TRTLLM_MXFP4_MXFP8,
    Backend::FLASHINFER_TRTLLM_MXFP4_BF16,
    Backend::FLASHINFER_CUTLASS_MXFP4_MXFP8,
    Backend::FLASHINFER_CUTLASS_MXFP4_BF16,
    Backend::AITER_MXFP4_BF16,
    Backend::AITER_MXFP4_FP8,
    Backend::TRITON,
};

// triton_kernels 3.6.0 on capability 9.0 masks K in groups of 64 and loses part of a last half
// group. Measured for w13; for w2 it follows from the same code.
bool hopper_kernel(const Target& target) {
  return cuda_capability(target.arch) == 90 &&
         (target.backend == Backend::TRITON || target.backend == Backend::TRITON_UNFUSED);
}

}  // namespace

std::vector<DefectRow> defects() {
  return {
      {"generic AITER_MXFP4_BF16",
       [](const DefectFacts& facts) {
         return facts.target.backend == Backend::AITER_MXFP4_BF16 &&
                facts.target.family == Family::kGeneric;
       },
       "the generic converter of AITER_MXFP4_BF16 takes w13's gate and up halves for interleaved "
       "rows and takes them apart once more, so gate and up rows end up mixed",
       "vLLM #46122 (2026-06-26), in part #42595 (2026-05-29)"},
      {"generic TRITON",
       [](const DefectFacts& facts) {
         return facts.target.backend == Backend::TRITON && facts.target.family == Family::kGeneric;
       },
       "the generic converter of TRITON interleaves w13's weights and scales along the "
       "hidden dimension instead of their gate and up rows, so the kernel multiplies them "
       "with the wrong activations",
       ""},
      {"gpt_oss halves",
       [](const DefectFacts& facts) {
         return facts.target.family == Family::kGptOss && facts.order == W13Order::kHalves &&
                std::ranges::find(kWantInterleavedRows, facts.target.backend) !=
                    kWantInterleavedRows.end();
       },
       "the gpt_oss converter of this backend takes w13's rows for interleaved gate/up "
       "pairs, but this checkpoint stores all gate rows and then all up rows",
       "vllm-2026-08-17, for quant_method mxfp4: the generic converter runs there"},
      {"sm90 w13",
       [](const DefectFacts& facts) {
         return hopper_kernel(facts.target) && facts.padded.hidden_size % 64 == 32;
       },
       "the sm90 kernel of triton_kernels 3.6.0 misreads w13 when the hidden size is not a "
       "multiple of 64",
       ""},
      {"sm90 w2",
       [](const DefectFacts& facts) {
         return hopper_kernel(facts.target) && facts.padded.intermediate_size % 64 == 32;
       },
       "the sm90 kernel of triton_kernels 3.6.0 misreads w2 when the intermediate size is "
       "not a multiple of 64",
       ""},
  };
}

}  // namespace mxfp4::base
