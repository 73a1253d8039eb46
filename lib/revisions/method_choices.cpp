#include "lib/revisions/method_choices.hpp"

#include <algorithm>

#include "lib/oracle/predicates.hpp"
#include "lib/revisions/edit.hpp"

namespace mxfp4 {
namespace {

using enum Backend;

constexpr std::string_view kCompressedTensors = "CompressedTensorsW4A4Mxfp4MoEMethod";
constexpr std::string_view kAutoRound = "INCMxfp4MoEMethod";
constexpr std::string_view kPassthrough = "passthrough";
constexpr std::string_view kMoeEpNames[] = {"flashinfer_moe_ep_cutedsl",
                                            "flashinfer_moe_ep_mega_deep_gemm"};

template <class Change>
void for_each_choosing_method(RuleSet& rules, Change&& change) {
  for (CallerRow& row : rules.callers) {
    if (row.method == kCompressedTensors || row.method == kAutoRound) change(row);
  }
}

Condition moe_ep_asked() {
  std::vector<Condition> names;
  for (const std::string_view name : kMoeEpNames) names.push_back(moe_backend_is(name));
  return any_of(std::move(names));
}

DirectRow oracle_row(Condition when) {
  return {
      .when = std::move(when), .backend = {}, .experts_class = "", .note = "", .asks_oracle = true};
}

bool is_moe_ep(std::optional<Backend> backend) {
  return backend == FLASHINFER_MOE_EP_CUTEDSL || backend == FLASHINFER_MOE_EP_DEEP_GEMM;
}

// config/kernel.py, bind_passthrough_all2all_backend and validate_flashinfer_moe_ep_model: asked at
// start-up, before a layer is made.
void stop_moe_ep_at_start(RuleSet& rules) {
  edit::add(rules.load_notes,
            {"all-to-all of MoE-EP",
             [](const LoadFacts& f) {
               const std::string_view used = f.question.parallel.all2all_backend;
               return is_moe_ep(f.decision.backend) && used != "allgather_reducescatter" &&
                      used != kPassthrough;
             },
             "{value} dispatches and combines itself, and the engine refuses "
             "--all2all-backend {all2all} beside it: start-up stops with ValueError",
             "", /*stops=*/true});
  edit::add(rules.load_notes,
            {"passthrough",
             [](const LoadFacts& f) {
               return f.decision.backend && !is_moe_ep(f.decision.backend) &&
                      f.question.parallel.all2all_backend == kPassthrough;
             },
             "the all-to-all backend passthrough belongs to --moe-backend flashinfer_moe_ep_*: "
             "beside {value} start-up stops with ValueError",
             "", /*stops=*/true});
  edit::add(rules.load_notes,
            {"model of MoE-EP",
             [](const LoadFacts& f) {
               const std::string_view model = f.question.deployment.model_type;
               return f.decision.backend == FLASHINFER_MOE_EP_DEEP_GEMM && !model.empty() &&
                      !model.starts_with("deepseek_v4");
             },
             "{value} serves DeepSeek-V4 and V4.1 only: start-up stops with ValueError", "",
             /*stops=*/true});
}

}  // namespace

DirectRow no_marlin_repack() {
  return {.when = none_of({platform_is(Platform::kCuda)}),
          .backend = {},
          .experts_class = "MarlinExperts",
          .note = "this method bypasses the oracle: Marlin's own preparation, no rounding",
          .refusal = {"AttributeError",
                      "MarlinExperts are taken here, and only CUDA builds of the engine have their "
                      "repack (gptq_marlin_repack): loading stops"}};
}

DirectRow xpu_as_loaded() {
  return {.when = platform_is(Platform::kXpu),
          .backend = XPU,
          .experts_class = "XPUExpertsMxFp4",
          .note = "this method bypasses the oracle: on xpu the tensors stay as they are loaded"};
}

void ask_oracle_for_b12x(RuleSet& rules) {
  for_each_choosing_method(rules, [](CallerRow& row) {
    edit::add_first(row.direct, oracle_row(moe_backend_is("b12x")));
  });
}

void ask_for_moe_ep(RuleSet& rules) {
  for_each_choosing_method(rules, [](CallerRow& row) {
    DirectRow added = oracle_row(moe_ep_asked());
    if (row.method == kAutoRound) {
      added.asks_oracle = false;
      added.experts_class = "none";
      added.note = "this method bypasses the oracle";
      added.refusal = {"ValueError",
                       "moe_backend='{moe_backend}' is not supported for AutoRound (INC) MXFP4 MoE "
                       "checkpoints"};
    }
    edit::add_first(row.direct, std::move(added));
  });
  stop_moe_ep_at_start(rules);
  edit::row(rules.load_notes, "EPLB").holds = [](const LoadFacts& f) {
    if (f.caller == nullptr || !f.question.parallel.enable_eplb) return false;
    return f.caller->method == "GptOssMxfp4MoEMethod" || f.caller->method == kAutoRound ||
           (f.caller->method == kCompressedTensors && !is_moe_ep(f.decision.backend));
  };
}

void ask_classes_afterwards(RuleSet& rules) {
  for_each_choosing_method(rules, [](CallerRow& row) {
    for (DirectRow& direct : row.direct) {
      if (direct.backend) {
        direct.asked_key = direct.backend == CUTLASS_MXFP4_MXFP4 ? "mxfp4" : "";
      }
    }
  });
}

}  // namespace mxfp4
