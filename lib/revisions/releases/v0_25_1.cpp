// vLLM 0.25.1.
#include "lib/revisions/releases.hpp"

namespace mxfp4 {

const Release kRelease0251 = {
    .name = "vllm-0.25.1",
    .version = "0.25.1",
    .date = "2026-07-12",
    .commit = "752a3a504",
    .pins = {{"flashinfer", "0.6.13"}, {"humming-kernels", "0.1.10"}},
    .changes = "no rule",
    .executed = "12,335 of 12,335 decisions with traces; on a CPU, bytes of layouts",
};

}  // namespace mxfp4
