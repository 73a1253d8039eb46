// Reads tensors of a layer one after another through a ring of memory that is smaller than they
// are. Threads fill the ring in order; the caller takes full runs, copies them (to a GPU, say) and
// gives them back.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "formats/loader/arriving_sum.hpp"
#include "formats/loader/load_source.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

class LayerStream {
 public:
  // Consecutive bytes of one tensor, consecutive in the ring.
  struct Run {
    size_t tensor = 0;
    int64_t begin = 0;  // in the tensor
    ConstBytes bytes;
  };

  // A run has at most `run_bytes` bytes, which is 1 or more. The ring must hold four such runs, so
  // that the caller can keep two while the next is read. `blob` and the ring have to outlive the
  // stream. Threads start to read at once. With options.verify each tensor is compared with its
  // checksum in the manifest, which takes less time than the frames' checksums. Throws
  // Error::usage.
  LayerStream(const LoadSource& blob, size_t layer, std::span<const size_t> tensors,
              MutableBytes ring, int64_t run_bytes, const LoadOptions& options);
  LayerStream(const LayerStream&) = delete;
  LayerStream& operator=(const LayerStream&) = delete;
  // Waits until no thread writes to the ring.
  ~LayerStream();

  // Waits for the next run, in the tensors' order; nullopt at the end. A tensor's last run is
  // returned only after the tensor was compared. Throws Error::input naming file and tensor,
  // Cancelled, and Error::usage when the runs that were not given back leave too little of the
  // ring.
  [[nodiscard]] std::optional<Run> next();
  // Frees the memory of the oldest run that was not given back. Throws Error::usage without one.
  void give_back();

 private:
  // A piece and its place in the ring: `position` modulo the ring's size. `position` only grows.
  struct Job {
    LoadPiece piece;
    size_t tensor;  // index into the tensors asked for
    size_t number;  // of the tensor's pieces
    int64_t position;
    bool done = false;
  };
  struct Jobs {
    size_t first;
    size_t end;
  };

  void plan(std::span<const size_t> tensors, int64_t run_bytes);
  [[nodiscard]] MutableBytes place(const Job& job) const;
  [[nodiscard]] int64_t end_of(const Job& job) const { return job.position + job.piece.bytes; }
  // Whether a tensor of the layer is compared with its checksum.
  [[nodiscard]] bool is_summed(size_t tensor) const;
  // Whether there is a job whose place is free.
  [[nodiscard]] bool can_start() const;
  [[nodiscard]] bool is_done(const Jobs& run) const;
  // Does the next job. Called with the lock held; releases it while it reads.
  void work_once(std::unique_lock<std::mutex>& lock, LoadBuffers& buffers);
  void read(Job& job, LoadBuffers& buffers);
  void work();

  const LoadSource& blob_;
  size_t layer_;
  MutableBytes ring_;
  LoadOptions options_;
  std::vector<Job> jobs_;
  std::vector<Jobs> runs_;
  std::vector<ArrivingSum> sums_;  // of the tensors asked for

  std::mutex mutex_;
  std::condition_variable freed_;   // a place was freed, or the stream ends
  std::condition_variable filled_;  // a job is done, or failed
  size_t next_job_ = 0;
  size_t next_run_ = 0;
  size_t given_back_ = 0;  // runs
  int64_t free_from_ = 0;  // position behind the last run that was given back
  bool stopped_ = false;
  std::exception_ptr failure_;
  LoadBuffers buffers_;  // of the caller's thread, which reads if no other could start
  std::vector<std::jthread> threads_;
};

}  // namespace mxfp4
