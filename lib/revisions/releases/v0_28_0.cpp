// vLLM 0.28.0: humming-kernels 0.1.12, and DeepGEMM's order of scales for capability 12.x.
#include "lib/layouts/humming_layouts.hpp"
#include "lib/revisions/edit.hpp"
#include "lib/revisions/humming_rows.hpp"
#include "lib/revisions/knob_conditions.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kKernelNoInt8 =
    "Humming has INT8 activations from capability 7.5 on: its kernel stops with AssertionError";
constexpr std::string_view kKernelNo4BitBelow12 =
    "Humming has 4-bit activations from capability 12.0 on: its kernel stops with AssertionError";

// humming-kernels 0.1.12 has INT8 and 4-bit activations, and layouts of its own for
// capability 12.x.
void change_humming_0_28(RuleSet& rules) {
  using namespace humming;
  std::vector<LayoutRow> rows = refused_by_kernels();
  rows.insert(rows.end(),
              {refused({"INT8 activations, CUDA capability below 7.5", int8_below_7_5},
                       kKernelNoInt8, "AssertionError"),
               refused({"4-bit activations, CUDA capability below 12.0", fp4_below_12},
                       kKernelNo4BitBelow12, "AssertionError"),
               packed(kInt8, kHummingInt8Layout),
               packed({"FP8 activations in groups of 64 or 128, CUDA capability 12.x",
                       [](const Target& t) {
                         return (is_fp8_group64(t) || is_fp8_group128(t)) && arch_12(t);
                       }},
                      kHummingFp8Layout),
               packed(kFp8On12, kHummingMxmmaFp8Layout), packed(kFp8Below12, kHummingFp8Layout),
               packed(kFp4On12, kHummingMxmmaFp4TilesLayout), packed(kWgmma, kHummingWgmmaLayout),
               packed(kMma, kHummingMmaLayout)});
  replace_rows(rules, std::move(rows));
}

}  // namespace

const Release kRelease0280 = {
    .name = "vllm-0.28.0",
    .date = "2026-08-26",
    .commit = "2cf0a6915",
    .pins = {{"flashinfer", "0.6.16.post3"},
             {"triton_kernels", "3.5.1", Platform::kCuda},
             {"humming-kernels", "0.1.12"}},
    .changes = "layouts of HUMMING; DEEPGEMM_MXFP4 on sm12x",
    .apply =
        [](RuleSet& rules) {
          change_humming_0_28(rules);
          rules.loader.encodes_scales = true;  // quantization/mxfp4.py
          // See kNoDeepgemmOn12.
          edit::drop_layouts(rules, Backend::DEEPGEMM_MXFP4, kCapability12);
        },
};

}  // namespace mxfp4
