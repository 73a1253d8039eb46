#include "lib/exec/pipeline.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace mxfp4 {
namespace {

// Makes what one thread wrote visible to the thread that goes on with it. oneTBB orders the stages
// already, but in a way that a race detector does not see.
class Handoff {
 public:
  void give() { count_.fetch_add(1, std::memory_order_release); }
  void take() const { (void)count_.load(std::memory_order_acquire); }

 private:
  std::atomic<int64_t> count_{0};
};

// From a caller to the stages, and back. All pipelines share the two, because a stage must take
// before it follows any pointer of its caller.
Handoff entries;
Handoff exits;

// Holds while a stage runs, which may end by an exception.
class Visit {
 public:
  Visit() { entries.take(); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  ~Visit() { exits.give(); }
};

// Holds while the caller waits for the stages.
class Wait {
 public:
  Wait() { entries.give(); }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  ~Wait() { exits.take(); }
};

}  // namespace

int64_t tokens_for(int64_t memory, int64_t job_cost, int threads) {
  const int64_t fit = memory / std::max<int64_t>(1, job_cost);
  return std::clamp<int64_t>(fit, 1, threads + threads / 2 + 1);
}

int64_t default_memory(int threads) {
  return std::max(int64_t{256} << 20, (int64_t{64} << 20) * threads);
}

void run_pipeline(int64_t num_jobs, const PipelineLimits& limits, const PipelineStages& stages) {
  namespace tbb = oneapi::tbb;
  if (limits.threads <= 1) {  // no scheduler in the way: easier to profile and to debug
    for (int64_t job = 0; job < num_jobs; ++job) {
      if (stages.read) stages.read(job, 0);
      stages.work(job, 0);
      if (stages.place) stages.place(job, 0);
      if (stages.store) stages.store(job, 0);
      stages.finish(job, 0);
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
  Handoff reads;  // from one call of the serial read stage to the next
  Handoff places;
  Handoff finishes;
  std::vector<Handoff> jobs(static_cast<size_t>(limits.tokens));
  const auto run = [&](const auto& stage, int64_t job) {
    if (!stage) return job;
    Handoff& handoff = jobs[static_cast<size_t>(token(job))];
    handoff.take();
    stage(job, token(job));
    handoff.give();
    return job;
  };
  const auto run_serial = [&](Handoff& last, const auto& stage, int64_t job) {
    last.take();
    run(stage, job);
    last.give();
    return job;
  };
  constexpr auto kSerial = tbb::filter_mode::serial_in_order;
  constexpr auto kParallel = tbb::filter_mode::parallel;
  arena.execute([&] {
    const auto read = tbb::make_filter<void, int64_t>(kSerial, [&](tbb::flow_control& flow) {
      const Visit visit;
      reads.take();
      if (next == num_jobs) {
        flow.stop();
        return int64_t{0};
      }
      run(stages.read, next);
      const int64_t job = next++;
      reads.give();
      return job;
    });
    const auto work = tbb::make_filter<int64_t, int64_t>(kParallel, [&](int64_t job) {
      const Visit visit;
      return run(stages.work, job);
    });
    const auto place = tbb::make_filter<int64_t, int64_t>(kSerial, [&](int64_t job) {
      const Visit visit;
      return run_serial(places, stages.place, job);
    });
    const auto store = tbb::make_filter<int64_t, int64_t>(kParallel, [&](int64_t job) {
      const Visit visit;
      return run(stages.store, job);
    });
    const auto finish = tbb::make_filter<int64_t, void>(kSerial, [&](int64_t job) {
      const Visit visit;
      run_serial(finishes, stages.finish, job);
    });
    const Wait wait;
    const auto tokens = static_cast<size_t>(limits.tokens);
    if (stages.place || stages.store) {
      tbb::parallel_pipeline(tokens, read & work & place & store & finish);
    } else {
      tbb::parallel_pipeline(tokens, read & work & finish);
    }
  });
}

}  // namespace mxfp4
