// Sizes and kernel settings of vLLM 017e9f4448: fused_moe/oracle/mxfp4.py
// (mxfp4_round_up_hidden_size_and_intermediate_size, make_mxfp4_moe_quant_config), the callers in
// quantization/, and maybe_roundup_layer_hidden_size of fused_moe/prepare_finalize/*.py.
#include <algorithm>
#include <array>

#include "lib/revisions/r2026_05_18_tables.hpp"
#include "lib/revisions/r2026_08_17_tables.hpp"

namespace mxfp4::r2026_08_17 {
namespace {

using enum Backend;

template <Backend... kBackends>
bool is_one_of(const Target& target) {
  return ((target.backend == kBackends) || ...);
}

// Only the generic method tells the rounding function its activation.
bool aiter_silu_or_situ(const Target& t) {
  return is_one_of<AITER_MXFP4_BF16>(t) && t.platform == Platform::kRocm &&
         t.family == Family::kGeneric && (t.activation == "silu" || t.activation == "situ");
}

}  // namespace

std::span<const All2AllHiddenRow> all2all_hidden() {
  static const std::vector<int64_t> kSizes = {2048, 2560, 3072, 4096, 5120, 6144, 7168, 8192};
  static const std::array kRows = {
      All2AllHiddenRow{"deepep_high_throughput", 256},  // 512 bytes of bf16
      All2AllHiddenRow{"deepep_v2", 256},
      All2AllHiddenRow{"deepep_low_latency", 1, kSizes},
      All2AllHiddenRow{"nixl_ep", 1, kSizes},
  };
  return kRows;
}

std::span<const RoundingRow> rounding() {
  static constexpr std::array kRows = {
      RoundingRow{{"EMULATION", is_one_of<EMULATION>}, 32, 32},
      RoundingRow{{"DEEPGEMM_MXFP4", is_one_of<DEEPGEMM_MXFP4>}, 128, 128},
      RoundingRow{{"MARLIN or BATCHED_MARLIN on xpu",
                   [](const Target& t) {
                     return is_one_of<MARLIN, BATCHED_MARLIN>(t) && t.platform == Platform::kXpu;
                   }},
                  128,
                  128},
      RoundingRow{{"MARLIN or BATCHED_MARLIN", is_one_of<MARLIN, BATCHED_MARLIN>}, 256, 128},
      RoundingRow{{"FLASHINFER_TRTLLM_*",
                   is_one_of<FLASHINFER_TRTLLM_MXFP4_BF16, FLASHINFER_TRTLLM_MXFP4_MXFP8>},
                  256,
                  128},
      RoundingRow{{"FLASHINFER_CUTLASS_*",
                   is_one_of<FLASHINFER_CUTLASS_MXFP4_BF16, FLASHINFER_CUTLASS_MXFP4_MXFP8>},
                  128,
                  128},
      RoundingRow{
          {"AITER_MXFP4_BF16 on rocm, generic, silu or situ", aiter_silu_or_situ}, 128, 128},
      RoundingRow{
          {"rocm", [](const Target& t) { return t.platform == Platform::kRocm; }}, 256, 256},
      RoundingRow{{"CPU", is_one_of<CPU>}, 32, 32},
      RoundingRow{{}, 1, 64},
  };
  return kRows;
}

std::span<const KernelSettingsRow> kernel_settings() {
  static const std::vector<KernelSettingsRow> kRows = [] {
    // With emulation the generic method leaves activations unquantized.
    std::vector<KernelSettingsRow> rows = {
        {.backend = EMULATION, .method = "Mxfp4MoEMethod", .constructor = "mxfp4_w4a16"}};
    const auto before = r2026_05_18::kernel_settings();
    rows.insert(rows.end(), before.begin(), before.end());
    return rows;
  }();
  return kRows;
}

}  // namespace mxfp4::r2026_08_17
