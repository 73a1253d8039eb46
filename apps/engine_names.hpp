// The names of the engine's variables and flags on which the experts' weights do not depend. Read
// in the wheels of vLLM 0.25.1 to 0.33.0: nothing that chooses a backend, loads experts or converts
// them reads these (envs.py and who asks it, engine/arg_utils.py).
#pragma once

#include <string_view>

namespace mxfp4 {

[[nodiscard]] bool is_serving_variable(std::string_view name);  // "VLLM_ROCM_USE_AITER_MLA"
[[nodiscard]] bool is_serving_flag(std::string_view name);      // "--max-num-batched-tokens"

}  // namespace mxfp4
