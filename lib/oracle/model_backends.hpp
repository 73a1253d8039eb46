// Kernels that a model's own file takes without the oracle (RuleSet::model_backends). Source: vLLM
// 0.33.0 models/deepseek_v4, models/deepseek_v41, models/kimi_k3.
#pragma once

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// The row that serves the deployment's model and moe_backend; null: the oracle is asked.
[[nodiscard]] const ModelBackendRow* asked_by_model(const Question& question);

// What the model's file answers: the row's backend, or the refusal of the first requirement that is
// not met. One trace step says which.
[[nodiscard]] Decision decide_by_model(const Question& question, const ModelBackendRow& row);

// The model types whose file takes this moe_backend; empty where none does.
[[nodiscard]] std::vector<std::string_view> models_that_ask(const RuleSet& rules,
                                                            std::string_view moe_backend);

}  // namespace mxfp4
