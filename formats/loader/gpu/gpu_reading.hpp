// One call of GpuLoader::read(), which its threads share. They fill the ring, and sleep then, until it
// is known where the bytes go.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "formats/loader/gpu/gpu_loader.hpp"

namespace mxfp4 {

class GpuLoader::Reading {
 public:
  // Throws Error::usage for what cannot be read, as GpuLoader::read().
  Reading(GpuLoader& loader, const BlobLoader& blob, std::span<const LoadRequest> requests,
          const LoadOptions& options);

  // Whether these arguments of GpuLoader::read() ask for the same bytes, and for no other place.
  [[nodiscard]] bool is_of(const BlobLoader& blob, std::span<const LoadRequest> requests,
                           const LoadOptions& options) const;
  // Where the bytes go, if that is not known yet, and where the caller may ask to cancel, or null.
  void send_to(std::span<const LoadRequest> requests, const int32_t* cancel);
  // Lets all threads end early.
  void stop();
  // The work of one thread.
  void work() noexcept;
  // For the thread that called send_to(), after its work(): waits until the GPU has summed everything,
  // or a thread failed.
  void await_sums() noexcept;
  // After all threads: waits until the GPU is done with the ring and the requests' memory, too. Throws
  // what a thread met, and Error::input for a checksum that differs.
  void finish();
  // As finish(), for what is not wanted any more.
  void await_gpu() noexcept;

 private:
  struct Piece {
    LoadPiece piece;
    size_t request;
  };
  // A piece that was read.
  struct Full {
    size_t piece;
    size_t slot;
  };

  void plan(size_t request);
  void work_in(size_t thread);
  // Calls `action`; what it throws is kept for finish(), and ends the other threads early.
  template <class Action>
  void guard(const Action& action) noexcept;
  void wake();
  // Waits until send_to() or stop().
  void await_target();
  void take(size_t index, size_t slot, LoadBuffers& buffers);

  [[nodiscard]] size_t slots_of_thread() const {
    return static_cast<size_t>(kThreadBytes / slot_bytes_);
  }
  [[nodiscard]] std::byte* memory_of(size_t slot) const {
    return loader_.ring_ + static_cast<int64_t>(slot) * slot_bytes_;
  }
  // Where the GPU puts a piece's sums, from the ring's begin on. There is room for those of the last
  // pieces, sum_places_ of them.
  [[nodiscard]] int64_t sums_offset(size_t piece) const;
  // Of pieces that the next copy may have.
  [[nodiscard]] size_t most_at_once() const;

  // Does what is due for all threads, as far as no other thread does it.
  void go_on();
  void send();
  void copy(std::span<const Full> pieces);
  void sum(std::span<const Full> pieces, CudaDriver::Event copied);
  void append_arrived();
  // Waits until the first `count` pieces are appended. Returns early after a failure.
  void await_appended(size_t count);

  // Whether the GPU sums a request, and the manifest has the checksum.
  [[nodiscard]] bool summed(size_t request) const {
    return verify_ && blob_.is_whole(requests_[request]);
  }
  // Whether the GPU has come past an event, which was recorded.
  [[nodiscard]] bool is_over(CudaDriver::Event event) const;
  [[nodiscard]] CudaDriver::Event copied(size_t copy) const {
    return loader_.copied_[copy % kUnderWay];
  }
  [[nodiscard]] ChecksumPart& part_of(size_t piece) { return loader_.parts_[piece % sum_places_]; }

  GpuLoader& loader_;
  const CudaDriver& cuda_;
  const BlobLoader& blob_;
  const std::vector<LoadRequest> requests_;  // of `out` only the size counts
  bool verify_;
  int64_t slot_bytes_;
  size_t sum_places_;  // pieces whose sums are kept
  std::atomic<const int32_t*> cancel_{nullptr};
  std::mutex target_mutex_;
  std::condition_variable target_known_;
  std::atomic<bool> has_target_{false};
  std::vector<CudaDriver::Address> targets_;  // by request, on the GPU, once has_target_
  std::vector<std::string> places_;           // by request: file and tensor
  std::vector<Piece> pieces_;
  std::atomic<size_t> next_{0};  // piece
  std::atomic<size_t> next_thread_{0};

  std::unique_ptr<std::atomic<bool>[]> used_;  // by slot
  std::mutex full_mutex_;
  std::deque<Full> full_;  // that the GPU has not got
  std::mutex send_mutex_;
  size_t handed_ = 0;                                     // pieces that the GPU got
  size_t copies_ = 0;                                     // that the GPU got
  size_t copies_over_ = 0;                                // of them
  std::array<std::vector<Full>, kUnderWay> under_way_{};  // by copy, modulo their number

  std::vector<Checksum> sums_;                 // by request
  std::vector<CudaDriver::Event> event_of_;    // by piece, modulo their number: its sums are there
  std::unique_ptr<std::atomic<bool>[]> sent_;  // by piece: its event is recorded
  std::mutex append_mutex_;
  std::atomic<size_t> appended_{0};  // pieces

  std::atomic<bool> failed_{false};
  std::mutex failure_mutex_;
  std::exception_ptr failure_;  // guarded by failure_mutex_
};

}  // namespace mxfp4
