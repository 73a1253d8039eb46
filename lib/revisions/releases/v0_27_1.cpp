// vLLM 0.27.1.
#include "lib/revisions/releases.hpp"

namespace mxfp4 {

const Release kRelease0271 = {
    .name = "vllm-0.27.1",
    .version = "0.27.1",
    .date = "2026-08-11",
    .commit = "6e448d0ea",
    .pins = {{"flashinfer", "0.6.16.post3"}, {"humming-kernels", "0.1.10"}},
    .changes = "no rule",
    .executed = "14,363 of 14,363 decisions with traces; on a CPU, bytes of layouts",
};

}  // namespace mxfp4
