#include "formats/loader/layer_stream.hpp"

#include <algorithm>
#include <utility>

#include "formats/blob/planned.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/wait.hpp"

namespace mxfp4 {
namespace {

// What a thread reads at a time: at most a frame, as `convert` writes them.
constexpr int64_t kReadBytes = int64_t{2} << 20;
// Two runs that the caller holds, the next one, and the space that a run left at the ring's end.
constexpr int64_t kRunsInRing = 4;

}  // namespace

LayerStream::LayerStream(const LoadSource& blob, size_t layer, std::span<const size_t> tensors,
                         MutableBytes ring, int64_t run_bytes, const LoadOptions& options)
    : blob_(blob), layer_(layer), ring_(ring), options_(options), sums_(tensors.size()) {
  if (run_bytes < 1 || static_cast<int64_t>(ring.size()) / kRunsInRing < run_bytes) {
    throw Error::usage("the ring holds fewer than four runs");
  }
  plan(tensors, run_bytes);
  const auto count = std::min(static_cast<size_t>(options.threads), jobs_.size());
  threads_.reserve(count);
  try {
    while (threads_.size() < count) threads_.emplace_back([this] { work(); });
  } catch (const std::exception&) {
    // The system has no more threads, or no memory for them. Without any thread, next() reads. An
    // exception must not leave here: the threads that run wait for a stop that only ~LayerStream
    // gives.
  }
}

LayerStream::~LayerStream() {
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
  }
  freed_.notify_all();
  threads_.clear();
}

void LayerStream::plan(std::span<const size_t> tensors, int64_t run_bytes) {
  const auto size = static_cast<int64_t>(ring_.size());
  int64_t position = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t bytes = blob_.manifest().layers[layer_].tensors[tensors[i]].spec.bytes();
    const auto pieces = blob_.pieces(layer_, tensors[i], 0, bytes, std::min(run_bytes, kReadBytes));
    int64_t run = 0;  // bytes of the run so far
    for (size_t number = 0; number < pieces.size(); ++number) {
      const int64_t at = position % size;
      const bool wraps = at + pieces[number].bytes > size;
      if (wraps) position += size - at;
      if (number == 0 || wraps || at == 0 || run + pieces[number].bytes > run_bytes) {
        runs_.push_back({jobs_.size(), jobs_.size()});
        run = 0;
      }
      jobs_.push_back({pieces[number], i, number, position});
      runs_.back().end = jobs_.size();
      run += pieces[number].bytes;
      position += pieces[number].bytes;
    }
  }
}

MutableBytes LayerStream::place(const Job& job) const {
  const auto size = static_cast<int64_t>(ring_.size());
  return ring_.subspan(static_cast<size_t>(job.position % size),
                       static_cast<size_t>(job.piece.bytes));
}

bool LayerStream::is_summed(size_t tensor) const {
  return options_.verify && blob_.manifest().layers[layer_].tensors[tensor].xxh3_128 != kNoChecksum;
}

bool LayerStream::can_start() const {
  return next_job_ < jobs_.size() &&
         end_of(jobs_[next_job_]) - free_from_ <= static_cast<int64_t>(ring_.size());
}

bool LayerStream::is_done(const Jobs& run) const {
  return std::all_of(jobs_.begin() + static_cast<ptrdiff_t>(run.first),
                     jobs_.begin() + static_cast<ptrdiff_t>(run.end),
                     [](const Job& job) { return job.done; });
}

std::optional<LayerStream::Run> LayerStream::next() {
  std::unique_lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  if (next_run_ == runs_.size()) {
    blob_.check_unchanged();
    return std::nullopt;
  }
  const Jobs run = runs_[next_run_];
  const Job& first = jobs_[run.first];
  const Job& last = jobs_[run.end - 1];
  if (end_of(last) - free_from_ > static_cast<int64_t>(ring_.size())) {
    throw Error::usage("too little of the ring was given back");
  }
  while (!failure_ && !is_done(run)) {
    if (threads_.empty()) {
      work_once(lock, buffers_);
    } else {
      wait(filled_, lock);
    }
  }
  if (failure_) std::rethrow_exception(failure_);
  const bool ends_tensor = run.end == jobs_.size() || jobs_[run.end].tensor != last.tensor;
  if (ends_tensor && is_summed(last.piece.tensor)) {
    blob_.compare(layer_, last.piece.tensor, sums_[last.tensor].hex());
  }
  ++next_run_;  // after the comparison: every later call reports a tensor that differs, too
  const auto bytes = static_cast<size_t>(end_of(last) - first.position);
  return Run{.tensor = first.piece.tensor,
             .begin = first.piece.begin,
             .bytes = {place(first).data(), bytes}};
}

void LayerStream::give_back() {
  {
    const std::scoped_lock lock(mutex_);
    if (given_back_ == next_run_) throw Error::usage("every run was given back");
    free_from_ = end_of(jobs_[runs_[given_back_].end - 1]);
    ++given_back_;
  }
  freed_.notify_all();
}

void LayerStream::work() {
  LoadBuffers buffers;
  std::unique_lock lock(mutex_);
  for (;;) {
    while (!stopped_ && next_job_ < jobs_.size() && !can_start()) wait(freed_, lock);
    if (stopped_ || next_job_ == jobs_.size()) return;
    work_once(lock, buffers);
  }
}

void LayerStream::work_once(std::unique_lock<std::mutex>& lock, LoadBuffers& buffers) {
  Job& job = jobs_[next_job_++];
  lock.unlock();
  std::exception_ptr failure;
  try {
    read(job, buffers);
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  job.done = true;
  if (failure) {
    if (!failure_) failure_ = failure;
    stopped_ = true;
    freed_.notify_all();
  }
  filled_.notify_one();
}

void LayerStream::read(Job& job, LoadBuffers& buffers) {
  throw_if_cancelled(options_.cancel);
  const bool summed = is_summed(job.piece.tensor);
  ChecksumPart sum;
  if (summed) sum.begin(job.piece.begin);
  in_context(blob_.place(layer_, job.piece.tensor), [&] {
    blob_.read_piece(layer_, job.piece, place(job), buffers, FrameCheck::kSizes,
                     summed ? &sum : nullptr);
  });
  if (summed) sums_[job.tensor].add(job.number, std::move(sum));
}

}  // namespace mxfp4
