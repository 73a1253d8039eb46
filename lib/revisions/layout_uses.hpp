// Which backends take a layout, and in which releases: read from the layout rows of every rule set,
// so that no layout has to say it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/backend.hpp"
#include "lib/core/layer.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// Backends that take a layout under one condition in the same releases.
struct LayoutUse {
  std::vector<Backend> backends;
  std::optional<Family> family;  // empty: both
  std::string when;              // the condition in words, empty: always
  std::string releases;          // "0.22.0 to 0.28.0", "from 0.29.0 on"; empty: all of the engine
  Engine engine = Engine::kVllm;
};

// The condition of a layout's row in words. "otherwise": none of the backend's earlier rows holds.
// "chosen by the model": the model's own code takes the kernel for a value of --moe-backend,
// without the oracle. Empty: always.
[[nodiscard]] std::string_view condition_words(const RuleSet& rules, const LayoutRow& row);

// In the order of the rows, oldest releases first, one engine behind the other.
[[nodiscard]] std::vector<LayoutUse> layout_uses(const Layout& layout);

// "TRITON, TRITON_UNFUSED (gpt_oss), CUDA capability 9.0: from 0.29.0 on"; for another engine than
// vLLM with its name: "TRITON (gpt_oss), CUDA capability 9.0, SGLang"
[[nodiscard]] std::string layout_use_text(const LayoutUse& use);

}  // namespace mxfp4
