// SGLang 0.5.16, whole: the first release of SGLang that is known here. v0_5_20.cpp and later hold
// what each later one changed.
#include "lib/oracle/predicates.hpp"
#include "lib/revisions/base/tables.hpp"
#include "lib/revisions/releases.hpp"
#include "lib/revisions/sglang/tables.hpp"

namespace mxfp4 {
namespace {

// A deployment's facts have the names of vLLM's newest base, except where SGLang has names of
// its own.
RuleSet rules_of_sglang_0_5_16() {
  RuleSet rules;
  rules.engine = Engine::kSglang;
  rules.weight_key_text = "MXFP4";
  rules.activations = base::activations();
  rules.activation_aliases = base::activation_aliases();
  rules.routing_methods = base::routing_methods();
  rules.all2all_backends = {"none",          "deepep",     "mooncake", "nixl",     "mori",
                            "ascend_fuseep", "flashinfer", "megamoe",  "ascend_tp"};
  // What a deployment has where nobody says otherwise.
  rules.all2all_aliases = {{"allgather_reducescatter", "none"}};
  rules.packages = {"flashinfer", "triton_kernels", "aiter", "deep_gemm", "humming"};
  rules.stock_packages = {
      {Platform::kCuda, {"flashinfer", "triton_kernels", "deep_gemm", "humming"}},
      {Platform::kRocm, {"aiter", "triton_kernels"}}};
  rules.gated = known_gated();
  rules.uses_all2all = none_of({all2all_backend_in({"none"})});
  rules.batched = never();
  rules.aliases = {{"triton_kernel", {Backend::TRITON}},
                   {"flashinfer_mxfp4",
                    {Backend::FLASHINFER_TRTLLM_MXFP4_MXFP8, Backend::FLASHINFER_CUTLASS_MXFP4_BF16,
                     Backend::FLASHINFER_CUTLASS_MXFP4_MXFP8}},
                   {"marlin", {Backend::MARLIN}},
                   {"humming", {Backend::HUMMING}}};
  rules.option_names = {"auto",
                        "deep_gemm",
                        "triton",
                        "triton_kernel",
                        "flashinfer_trtllm",
                        "experimental_sgl_trtllm",
                        "flashinfer_trtllm_routed",
                        "flashinfer_cutlass",
                        "flashinfer_mxfp4",
                        "flashinfer_cutedsl",
                        "cutlass",
                        "aiter",
                        "marlin",
                        "humming",
                        "experimental_sgl_marlin"};
  rules.callers = sglang::callers();
  rules.routing = base::routing();
  rules.takes_override = false;
  rules.load_notes = sglang::load_notes();
  rules.parameter_names = sglang::parameter_names();
  rules.loader = {
      .strides_by_checkpoint = true, .divides_by_all_ranks = false, .creates_biases = false};
  rules.rounding = sglang::rounding();
  rules.layouts = sglang::layouts();
  sglang::refuse_data_parallel(rules);
  return rules;
}

}  // namespace

const Release kSglang0516 = {
    .name = "sglang-0.5.16",
    .date = "2026-07-25",
    .pins = {{"flashinfer", "0.6.14"},
             {"sglang-kernel", "0.4.5"},
             {"humming-kernels", "0.1.10"},
             {"sgl-deep-gemm", "0.1.4.post1"}},
    .changes = "the oldest known here: gpt-oss and DeepSeek-V4",
    .apply = [](RuleSet& rules) { rules = rules_of_sglang_0_5_16(); },
};

}  // namespace mxfp4
