// Which layers a shard of a conversion writes. Shards share nothing but the plan, so that
// processes on different machines agree without talking to each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/plan/plan.hpp"

namespace mxfp4 {

// One of `count` processes that write one blob together; 0 <= index < count.
struct Shard {
  int64_t index = 0;
  int64_t count = 1;
};

// The shard of each layer, given the layers' bytes: the largest layer not yet placed goes to the
// shard with the least bytes, ties to the lower number. No shard gets more than the mean and one
// layer. `shards` is at least 1; shards beyond the number of layers stay empty.
[[nodiscard]] std::vector<int64_t> assign_shards(std::span<const int64_t> layer_bytes,
                                                 int64_t shards);

// For each file of the plan, whether it is the shard's. All ranks of a layer stay together, since
// they are made from one read.
[[nodiscard]] std::vector<bool> files_of_shard(const Plan& plan, const Shard& shard);

// Removes the jobs of files that are not `wanted`; the files themselves stay in the plan, so that
// indices keep their meaning.
void keep_jobs(Plan& plan, const std::vector<bool>& wanted);

// Output bytes of all jobs of the plan.
[[nodiscard]] int64_t job_bytes(const Plan& plan);

}  // namespace mxfp4
