// The engine's own words that this program does not take: flags of its command line and variables
// of its environment, each with its answer: the word to use, or why it has no influence on the
// experts' bytes. Read in vLLM 0.21.0 to 0.33.0 (engine/arg_utils.py, envs.py, and who reads the
// variables there).
#pragma once

#include <string_view>

namespace mxfp4 {

struct EngineWord {
  std::string_view word;    // "--pipeline-parallel-size", "VLLM_ALL2ALL_BACKEND"
  std::string_view answer;  // a hint
  bool no_influence = false;
};

// Null for a word that the tables do not have.
[[nodiscard]] const EngineWord* engine_flag(std::string_view name);
[[nodiscard]] const EngineWord* engine_variable(std::string_view name);

// A value of --moe-backend that no release takes, and that people meet all the same; null
// for others.
[[nodiscard]] const EngineWord* engine_moe_backend(std::string_view name);

}  // namespace mxfp4
