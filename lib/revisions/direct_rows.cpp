#include "lib/revisions/direct_rows.hpp"

#include <utility>

#include "lib/oracle/predicates.hpp"

namespace mxfp4 {

bool chooses_itself(const CallerRow& row) {
  return row.method == kCompressedTensorsMethod || row.method == kAutoRoundMethod;
}

DirectRow oracle_row(Condition when) {
  return {
      .when = std::move(when), .backend = {}, .experts_class = "", .note = "", .asks_oracle = true};
}

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
          .backend = Backend::XPU,
          .experts_class = "XPUExpertsMxFp4",
          .note = "this method bypasses the oracle: on xpu the tensors stay as they are loaded"};
}

}  // namespace mxfp4
