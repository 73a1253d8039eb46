// Reads tensors of a layer, one after another, through memory that is smaller than they are, a ring:
// threads fill it in order, and the caller takes what is full, copies it to a GPU, say, and gives it
// back.
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
#include "formats/loader/blob_loader.hpp"
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

  // Runs have at most `run_bytes`, 1 or more; the ring holds four of them or more, so that two can be
  // kept while the next is read. `blob` and the ring have to outlive this. Threads read from now on.
  // With options.verify each tensor is compared with its checksum in the manifest, which takes less
  // time than those of frames. Throws Error::usage.
  LayerStream(const BlobLoader& blob, size_t layer, std::span<const size_t> tensors,
              MutableBytes ring, int64_t run_bytes, const LoadOptions& options);
  LayerStream(const LayerStream&) = delete;
  LayerStream& operator=(const LayerStream&) = delete;
  // Waits until no thread writes to the ring.
  ~LayerStream();

  // Waits for the next run, in the tensors' order; none at the end. The last run of a tensor comes
  // after its comparison. Throws Error::input naming file and tensor, Cancelled, and Error::usage
  // when the runs that were not given back leave too little of the ring.
  [[nodiscard]] std::optional<Run> next();
  // The oldest run that was not given back is filled anew. Throws Error::usage without one.
  void give_back();

 private:
  // A piece and where it goes. `position` grows on and on: modulo the ring's size it is the place.
  struct Job {
    LoadPiece piece;
    size_t tensor;  // of those asked for
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
  // Whether there is a job whose place is free.
  [[nodiscard]] bool can_start() const;
  [[nodiscard]] bool is_done(const Jobs& run) const;
  // Does the next job. Called with the lock held, which it lets go meanwhile.
  void work_once(std::unique_lock<std::mutex>& lock, LoadBuffers& buffers);
  void read(Job& job, LoadBuffers& buffers);
  void work();

  const BlobLoader& blob_;
  size_t layer_;
  MutableBytes ring_;
  LoadOptions options_;
  std::vector<Job> jobs_;
  std::vector<Jobs> runs_;
  std::vector<ArrivingSum> sums_;  // by tensor of those asked for

  std::mutex mutex_;
  std::condition_variable freed_;   // a place, or the end
  std::condition_variable filled_;  // a job is done, or failed
  size_t next_job_ = 0;
  size_t next_run_ = 0;
  size_t given_back_ = 0;  // runs
  int64_t free_from_ = 0;  // position behind the last run that was given back
  bool stopped_ = false;
  std::exception_ptr failure_;
  LoadBuffers buffers_;  // of the caller's thread, where there is no other
  std::vector<std::jthread> threads_;
};

}  // namespace mxfp4
