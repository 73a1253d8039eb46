#include "lib/core/expert_name.hpp"

#include <algorithm>
#include <array>

namespace mxfp4 {

bool names_expert(std::string_view name) {
  constexpr std::array<std::string_view, 7> kWords = {
      "expert",    "mlp1_weight",          "mlp2_weight",          "w13_weight",
      "w2_weight", "sparse_moe.input_lin", "sparse_moe.output_lin"};
  return name.find("shared_expert") == std::string_view::npos &&
         std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
           return name.find(word) != std::string_view::npos;
         });
}

}  // namespace mxfp4
