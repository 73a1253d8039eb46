// Cases in which the converters of vLLM 017e9f4448 (fused_moe/oracle/mxfp4.py) end without an error
// and write weights that are wrong for the model, or that no kernel there can read.
#include <algorithm>
#include <array>

#include "lib/revisions/r2026_08_17_tables.hpp"

namespace mxfp4::r2026_08_17 {
namespace {

using enum Backend;

// The branches of the gpt-oss converter that take w13's rows for interleaved gate/up pairs.
constexpr std::array kWantInterleavedRows = {
    FLASHINFER_TRTLLM_MXFP4_MXFP8,
    FLASHINFER_TRTLLM_MXFP4_BF16,
    FLASHINFER_CUTLASS_MXFP4_MXFP8,
    FLASHINFER_CUTLASS_MXFP4_BF16,
    AITER_MXFP4_BF16,
    AITER_MXFP4_FP8,
    TRITON,
};

bool hopper_kernel(const Target& target) {
  return cuda_capability(target.arch) == 90 &&
         (target.backend == TRITON || target.backend == TRITON_UNFUSED);
}

constexpr std::array kDefects = {
    DefectRow{[](const DefectFacts& facts) {
                return facts.target.backend == TRITON && facts.target.family == Family::kGeneric;
              },
              "the generic converter of TRITON interleaves w13's weights and scales along the "
              "hidden dimension instead of their gate and up rows, so the kernel multiplies them "
              "with the wrong activations",
              ""},
    DefectRow{[](const DefectFacts& facts) {
                return facts.target.family == Family::kGptOss && facts.order == W13Order::kHalves &&
                       std::ranges::find(kWantInterleavedRows, facts.target.backend) !=
                           kWantInterleavedRows.end();
              },
              "the gpt_oss converter of this backend takes w13's rows for interleaved gate/up "
              "pairs, but this checkpoint stores all gate rows and then all up rows",
              ""},
    DefectRow{[](const DefectFacts& facts) {
                return facts.target.backend == AITER_MXFP4_BF16 &&
                       facts.target.family == Family::kGptOss &&
                       facts.target.arch.starts_with("gfx1250");
              },
              "the gpt_oss converter writes the tiles of gfx950 here, which the only class of "
              "AITER_MXFP4_BF16 on gfx1250, AiterW4A16ExpertsMonolithic, cannot read",
              ""},
    DefectRow{[](const DefectFacts& facts) {
                return hopper_kernel(facts.target) && facts.padded.hidden_size % 64 == 32;
              },
              "the sm90 kernel of triton_kernels (measured with 3.6.0) misreads w13 when the "
              "hidden size is not a multiple of 64",
              ""},
    DefectRow{[](const DefectFacts& facts) {
                return hopper_kernel(facts.target) && facts.padded.intermediate_size % 64 == 32;
              },
              "the sm90 kernel of triton_kernels (measured with 3.6.0) misreads w2 when the "
              "intermediate size is not a multiple of 64",
              ""},
};

}  // namespace

std::span<const DefectRow> defect_rows() { return kDefects; }

}  // namespace mxfp4::r2026_08_17
