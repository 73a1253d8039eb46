// The engines' own flags and variables that people type in vain: the word to use here, or why the
// experts' bytes do not depend on it. A short list; every other unknown word is an error with the
// nearest name. Read in vLLM 0.21.0 to 0.33.0 (engine/arg_utils.py, envs.py).
#pragma once

#include <string_view>

namespace mxfp4 {

// The hint for "--pipeline-parallel-size" or "VLLM_ALL2ALL_BACKEND"; empty for a word that is not
// in the list.
[[nodiscard]] std::string_view engine_word(std::string_view name);

}  // namespace mxfp4
