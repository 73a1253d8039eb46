#include "lib/core/deployment.hpp"

#include <fmt/format.h>

#include <charconv>

#include "lib/core/error.hpp"

namespace mxfp4 {

World world_of(const ParallelConfig& parallel) {
  if (parallel.tp_size < 1 || parallel.pcp_size < 1 || parallel.dp_size < 1) {
    throw Error::input(fmt::format("parallel sizes must be at least 1: tp {}, pcp {}, dp {}",
                                   parallel.tp_size, parallel.pcp_size, parallel.dp_size));
  }
  World world;
  for (const int64_t size : {parallel.tp_size, parallel.pcp_size, parallel.dp_size}) {
    if (size > kMostRanks / world.ranks) {
      throw Error::usage(fmt::format("tp {} x pcp {} x dp {} are more than {} ranks",
                                     parallel.tp_size, parallel.pcp_size, parallel.dp_size,
                                     kMostRanks));
    }
    world.ranks *= size;
  }
  (parallel.enable_expert_parallel ? world.ep : world.tp) = world.ranks;
  return world;
}

std::string_view selector_name(Selector selector) {
  return selector == Selector::kGptOss ? "gpt_oss" : "deepseek_v4";
}

std::optional<Selector> selector_from_name(std::string_view name) {
  for (Selector selector : {Selector::kGptOss, Selector::kDeepseekV4}) {
    if (selector_name(selector) == name) return selector;
  }
  return std::nullopt;
}

std::string Target::knob(std::string_view name, std::string_view fallback) const {
  const auto found = knobs.find(std::string(name));
  return found == knobs.end() ? std::string(fallback) : found->second;
}

std::optional<int> cuda_capability(std::string_view arch) {
  if (!arch.starts_with("sm")) return std::nullopt;
  arch.remove_prefix(2);
  int capability = 0;
  const auto [end, error] = std::from_chars(arch.data(), arch.data() + arch.size(), capability);
  if (error != std::errc{} || end != arch.data() + arch.size() || capability < 10) {
    return std::nullopt;
  }
  return capability;
}

}  // namespace mxfp4
