#include "lib/exec/pipeline.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>

namespace mxfp4 {

int64_t tokens_for(int64_t memory, int64_t job_cost, int threads) {
  const int64_t fit = memory / std::max<int64_t>(1, job_cost);
  return std::clamp<int64_t>(fit, 1, 2 * int64_t{threads} + 2);
}

void run_pipeline(int64_t num_jobs, const PipelineLimits& limits, const PipelineStages& stages) {
  namespace tbb = oneapi::tbb;
  if (limits.threads <= 1) {  // no scheduler in the way: easier to profile and to debug
    for (int64_t job = 0; job < num_jobs; ++job) {
      stages.read(job, 0);
      stages.work(job, 0);
      stages.write(job, 0);
    }
    return;
  }
  const tbb::global_control control(tbb::global_control::max_allowed_parallelism,
                                    static_cast<size_t>(limits.threads));
  tbb::task_arena arena(limits.threads);
  int64_t next = 0;
  // Jobs leave in order and at most `tokens` are inside, so those inside are consecutive and
  // job % tokens is free when a job enters.
  const auto token = [&](int64_t job) { return job % limits.tokens; };
  arena.execute([&] {
    tbb::parallel_pipeline(
        static_cast<size_t>(limits.tokens),
        tbb::make_filter<void, int64_t>(tbb::filter_mode::serial_in_order,
                                        [&](tbb::flow_control& flow) {
                                          if (next == num_jobs) {
                                            flow.stop();
                                            return int64_t{0};
                                          }
                                          stages.read(next, token(next));
                                          return next++;
                                        }) &
            tbb::make_filter<int64_t, int64_t>(tbb::filter_mode::parallel,
                                               [&](int64_t job) {
                                                 stages.work(job, token(job));
                                                 return job;
                                               }) &
            tbb::make_filter<int64_t, void>(tbb::filter_mode::serial_in_order,
                                            [&](int64_t job) { stages.write(job, token(job)); }));
  });
}

}  // namespace mxfp4
