// --shard: which part of a conversion this process writes.
#pragma once

#include <functional>
#include <string>

#include "lib/plan/shard.hpp"

namespace mxfp4 {

// An environment variable's value, or null.
using Environment = std::function<const char*(const char*)>;

// "I/N" with 0 <= I < N; "auto" takes both from the batch system, "auto/N" only I:
//   Slurm array       (SLURM_ARRAY_TASK_ID - _MIN) / _STEP of SLURM_ARRAY_TASK_COUNT
//   Kubernetes        JOB_COMPLETION_INDEX; its count is in no variable, so auto/N
//   Open MPI          OMPI_COMM_WORLD_RANK of OMPI_COMM_WORLD_SIZE
// Throws Error::usage.
[[nodiscard]] Shard parse_shard(const std::string& text, const Environment& environment);

}  // namespace mxfp4
