// Jobs flow through stages: work (parallel), finish (serial, in order).
// Results that take long to store have two more before finish: place (serial, in order) and store
// (parallel). At most `tokens` jobs are in flight, so the number of buffers is bounded.
#pragma once

#include <cstdint>
#include <functional>

namespace mxfp4 {

// Called as stage(job, token): job counts from 0; token in [0, tokens) names the buffers that the
// job owns from its first stage to its last.
using StageFunction = std::function<void(int64_t job, int64_t token)>;

struct PipelineStages {
  StageFunction work = {};
  StageFunction place = {};
  StageFunction store = {};
  StageFunction finish;  // the only stage that must be there: it makes jobs leave in order
};

struct PipelineLimits {
  int threads = 1;
  int64_t tokens = 1;
};

// Runs jobs 0 .. num_jobs-1 on this thread and up to limits.threads - 1 others, fewer where the
// system has no more. A thread goes on with its job where it can, else with the oldest one, and
// only then begins another. The first exception of a stage stops the others and is rethrown here;
// no stage runs after it returned.
void run_pipeline(int64_t num_jobs, const PipelineLimits& limits, const PipelineStages& stages);

// How many jobs of at most `job_cost` bytes fit `memory` bytes: at least one, and no more than keep
// `threads` workers busy.
[[nodiscard]] int64_t tokens_for(int64_t memory, int64_t job_cost, int threads);

// Bytes of buffers when no budget was given: 64 MiB a thread, at least 256 MiB. 64 MiB hold one and
// a half jobs of one gpt-oss or DeepSeek expert each, so that no thread waits for another's last
// stage.
[[nodiscard]] int64_t default_memory(int threads);

}  // namespace mxfp4
