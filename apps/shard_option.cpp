#include "apps/shard_option.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "apps/options.hpp"
#include "apps/parsers.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kMaxShards = 100'000;

std::optional<int64_t> variable(const Environment& environment, const char* name) {
  const char* text = environment(name);
  if (text == nullptr) return std::nullopt;
  const auto value = whole_number(text);
  if (!value) throw Error::usage(fmt::format("--shard auto: {} is '{}'", name, text));
  return value;
}

struct Found {
  std::optional<int64_t> index;
  std::optional<int64_t> count;
};

Found ask_batch_system(const Environment& environment) {
  const auto get = [&](const char* name) { return variable(environment, name); };
  if (const auto id = get("SLURM_ARRAY_TASK_ID")) {
    const int64_t first = get("SLURM_ARRAY_TASK_MIN").value_or(0);
    const int64_t step = get("SLURM_ARRAY_TASK_STEP").value_or(1);
    if (*id < first || step == 0 || (*id - first) % step != 0) {
      throw Error::usage(
          fmt::format("--shard auto: SLURM_ARRAY_TASK_ID {} is not {} plus a "
                      "multiple of {}",
                      *id, first, step));
    }
    return {(*id - first) / step, get("SLURM_ARRAY_TASK_COUNT")};
  }
  if (const auto index = get("JOB_COMPLETION_INDEX")) return {index, std::nullopt};
  return {get("OMPI_COMM_WORLD_RANK"), get("OMPI_COMM_WORLD_SIZE")};
}

}  // namespace

Shard parse_shard(const std::string& text, const Environment& environment) {
  const size_t slash = text.find('/');
  const std::string_view first = std::string_view(text).substr(0, slash);
  Found found;
  if (first == "auto") {
    found = ask_batch_system(environment);
    if (!found.index) {
      throw Error::usage(
          "--shard auto: neither SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX nor "
          "OMPI_COMM_WORLD_RANK is set");
    }
  } else {
    found.index = whole_number(first);
  }
  if (slash != std::string::npos)
    found.count = whole_number(std::string_view(text).substr(slash + 1));
  const bool wanted_count = slash != std::string::npos || first == "auto";
  if (!found.index || !wanted_count || (slash != std::string::npos && !found.count)) {
    throw Error::usage(fmt::format("--shard: '{}' is neither I/N, auto nor auto/N", text));
  }
  if (!found.count) {
    throw Error::usage("--shard auto: the batch system does not say how many there are")
        .hint("give the number of shards: --shard auto/N");
  }
  if (*found.count > kMaxShards) {
    throw Error::usage(fmt::format("--shard: {} shards, at most {}", *found.count, kMaxShards));
  }
  if (*found.count == 0) {
    throw Error::usage(fmt::format("--shard: '{}': there has to be at least one shard", text));
  }
  if (*found.index >= *found.count) {
    throw Error::usage(fmt::format("--shard: {} of {}: shards count from 0 to {}", *found.index,
                                   *found.count, *found.count - 1));
  }
  return {*found.index, *found.count};
}

}  // namespace mxfp4
