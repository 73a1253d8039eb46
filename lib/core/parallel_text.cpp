#include "lib/core/parallel_text.hpp"

#include <fmt/format.h>

namespace mxfp4 {

std::string parallel_text(const ParallelConfig& parallel) {
  return fmt::format("tp {}, dp {}, pcp {}{}", parallel.tp_size, parallel.dp_size,
                     parallel.pcp_size, parallel.enable_expert_parallel ? ", expert parallel" : "");
}

}  // namespace mxfp4
