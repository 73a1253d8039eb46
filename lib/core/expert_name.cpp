#include "lib/core/expert_name.hpp"

#include <algorithm>
#include <array>

namespace mxfp4 {

bool names_expert(std::string_view name) {
  constexpr std::array kWords = std::to_array<std::string_view>(
      {"expert", "mlp1_weight", "mlp1_bias", "mlp2_weight", "mlp2_bias", "w13_weight", "w13_bias",
       "w13_input_scale", "w2_weight", "w2_bias", "w2_input_scale", "sparse_moe.input_lin",
       "sparse_moe.output_lin"});
  return name.find("shared_expert") == std::string_view::npos &&
         std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
           return name.find(word) != std::string_view::npos;
         });
}

}  // namespace mxfp4
