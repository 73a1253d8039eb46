// The pipeline over typed jobs: each job in flight owns a set of buffers, which the next job takes
// over. Conversion, inverse and both verifications run on this.
//
// Usage:
//   run_jobs<Job, Buffers>(jobs, limits_for(memory, largest_cost, threads), {.work = ..., ...});
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lib/exec/pipeline.hpp"

namespace mxfp4 {

// A job's stages, run as PipelineStages are: place and finish are serial and in order, work and store
// parallel. Any of them may be empty.
template <class Job, class Buffers>
struct JobStages {
  std::function<void(const Job&, Buffers&)> work{};
  std::function<void(const Job&, Buffers&)> place{};
  std::function<void(const Job&, Buffers&)> store{};
  std::function<void(const Job&, Buffers&)> finish{};
};

// The number of jobs in flight: as many of `job_cost` bytes as `memory` holds, at least one.
[[nodiscard]] inline PipelineLimits limits_for(int64_t memory, int64_t job_cost, int threads) {
  return {threads, tokens_for(memory, job_cost, threads)};
}

template <class Job, class Buffers>
void run_jobs(std::span<const Job> jobs, const PipelineLimits& limits,
              const JobStages<Job, Buffers>& stages) {
  std::vector<Buffers> in_flight(static_cast<size_t>(limits.tokens));
  const auto stage = [&](const std::function<void(const Job&, Buffers&)>& step) {
    std::function<void(int64_t, int64_t)> by_index;
    if (step) {
      by_index = [&jobs, &in_flight, &step](int64_t job, int64_t token) {
        step(jobs[static_cast<size_t>(job)], in_flight[static_cast<size_t>(token)]);
      };
    }
    return by_index;
  };
  PipelineStages by_index{.work = stage(stages.work),
                          .place = stage(stages.place),
                          .store = stage(stages.store),
                          .finish = stage(stages.finish)};
  if (!by_index.finish) by_index.finish = [](int64_t, int64_t) {};  // makes jobs leave in order
  run_pipeline(static_cast<int64_t>(jobs.size()), limits, by_index);
}

}  // namespace mxfp4
