#include "lib/exec/pipeline.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "lib/exec/wait.hpp"

namespace mxfp4 {
namespace {

// One run of the pipeline. A job takes milliseconds, so one lock over all that changes is cheap.
class Run {
 public:
  Run(int64_t num_jobs, int64_t tokens, const PipelineStages& stages)
      : num_jobs_(num_jobs), slots_(static_cast<size_t>(tokens)) {
    const auto add = [this](const StageFunction& function, bool serial) {
      if (function) stages_.push_back({&function, serial});
    };
    add(stages.work, false);
    add(stages.place, true);
    add(stages.store, false);
    add(stages.finish, true);
  }

  // What each thread runs: steps, until there are none left or one has thrown.
  void work() {
    std::optional<int64_t> last;  // this thread's last job, whose data is still in its cache
    std::unique_lock lock(mutex_);
    while (true) {
      const std::optional<int64_t> job = take(last);
      if (job) {
        last = run(*job, lock) ? job : std::nullopt;
      } else if (failure_ || finished_ == num_jobs_) {
        break;
      } else {
        last.reset();
        ++waiting_;
        wait(changed_, lock);
        --waiting_;
      }
    }
    changed_.notify_all();
  }

  // Rethrows the first exception of a stage. Called once no thread is in work() any more.
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  struct Stage {
    const StageFunction* function;
    bool serial;
    int64_t turn = 0;  // of a serial stage: the job that it takes next
  };
  // Where a job in flight is.
  struct Slot {
    size_t stage = 0;
    bool running = false;
  };

  // Jobs leave in order and as many are in flight as there are slots, so those in flight are
  // consecutive and a job's slot is free when it enters.
  [[nodiscard]] int64_t token(int64_t job) const {
    return job % static_cast<int64_t>(slots_.size());
  }
  [[nodiscard]] Slot& slot(int64_t job) { return slots_[static_cast<size_t>(token(job))]; }

  [[nodiscard]] bool ready(int64_t job) {
    const Slot& at = slot(job);
    const Stage& stage = stages_[at.stage];
    return !at.running && (!stage.serial || stage.turn == job);
  }
  [[nodiscard]] bool may_enter() const {
    return entered_ < num_jobs_ && entered_ - finished_ < static_cast<int64_t>(slots_.size()) &&
           (!stages_.front().serial || stages_.front().turn == entered_);
  }

  // The job whose next step can run: `wanted`, else the oldest in flight, else a new one.
  [[nodiscard]] std::optional<int64_t> next(std::optional<int64_t> wanted) {
    if (failure_) return std::nullopt;
    if (wanted && ready(*wanted)) return wanted;
    for (int64_t job = finished_; job < entered_; ++job) {
      if (ready(job)) return job;
    }
    if (may_enter()) return entered_;
    return std::nullopt;
  }

  // Marks the next step as this thread's. If there is another step, wakes one thread, which does
  // the same in turn.
  [[nodiscard]] std::optional<int64_t> take(std::optional<int64_t> wanted) {
    const std::optional<int64_t> job = next(wanted);
    if (!job) return job;
    if (*job == entered_) {
      ++entered_;
      slot(*job) = {};
    }
    slot(*job).running = true;
    if (waiting_ > 0 && next(std::nullopt)) changed_.notify_one();
    return job;
  }

  // Runs the job's step without the lock. False when that was the job's last.
  [[nodiscard]] bool run(int64_t job, std::unique_lock<std::mutex>& lock) {
    Slot& at = slot(job);
    Stage& stage = stages_[at.stage];
    lock.unlock();
    std::exception_ptr thrown;
    try {
      (*stage.function)(job, token(job));
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    if (thrown && !failure_) failure_ = thrown;
    if (stage.serial) stage.turn = job + 1;
    at.running = false;
    const bool more = ++at.stage < stages_.size();
    if (!more) ++finished_;
    return more;
  }

  const int64_t num_jobs_;
  std::vector<Stage> stages_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, as are the turns of stages_.
  std::vector<Slot> slots_;
  int64_t entered_ = 0;
  int64_t finished_ = 0;
  int waiting_ = 0;
  std::exception_ptr failure_;
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
  // The calling thread counts too. More threads than jobs in flight would have no work.
  const int64_t count = std::min({int64_t{limits.threads}, limits.tokens, num_jobs});
  Run run(num_jobs, count > 1 ? limits.tokens : 1, stages);
  std::vector<std::thread> others;
  try {
    while (static_cast<int64_t>(others.size()) < count - 1) {
      others.emplace_back([&run] { run.work(); });
    }
  } catch (const std::exception&) {
    // The system has no more threads, or no memory for them: those that were started do the work.
  }
  run.work();
  for (std::thread& thread : others) thread.join();
  run.rethrow();
}

}  // namespace mxfp4
