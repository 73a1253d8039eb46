// One call of GpuLoader::read(), which its threads share: the ring (GpuSlots) that they fill, the
// sender (GpuSender) that hands full slots to the GPU, and the sums (GpuSums) that come back.
//
// A thread that waits, for a free slot or for a sum, does not sleep. It goes on: sends
// what is due, appends what is due, lets other threads have the CPU (std::this_thread::yield), and
// asks again. A sleeping thread would need somebody to wake it. When the ring is full all threads
// wait, so only the driver could, by interrupt, after a copy has ended: the copy engine would stand
// still meanwhile. Waits asleep were tried and gained nothing (scripts/python/README.md). Since
// waiting threads keep their CPUs, readers_of_rank() in scripts/python leaves some CPUs to others.
//
// Nothing here relies on a processor's order of memory: what one thread hands to another goes
// through a mutex, or through a release and the acquire that sees it. Between CPUs and the GPU only
// the driver's promises count. A call that hands work to the GPU lets the GPU see what the calling
// thread could see, so also what other threads put into slots before GpuSender::add(). A thread to
// which cuEventQuery said that an event is over sees what the GPU wrote before the event: the sums.
// Bytes that went past the caches are in order before a piece is handed on (run_schedule() ends
// with finish_streaming()).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/loader/gpu/gpu_passes.hpp"
#include "formats/loader/gpu/gpu_plan.hpp"
#include "formats/loader/gpu/gpu_sender.hpp"
#include "formats/loader/gpu/gpu_slots.hpp"
#include "formats/loader/gpu/gpu_sums.hpp"

namespace mxfp4 {

// What a reading uses of the loader, which outlives the reading.
struct GpuRing {
  const GpuDevice& gpu;
  std::byte* memory;
  size_t threads;                  // that have slots of the ring
  size_t slots_of_thread;          // of the plan's slot_bytes()
  std::span<LoadBuffers> buffers;  // by thread
  const GpuEvents& copied;
  GpuSumRoom sums;
  size_t sum_places;
  CudaDriver::Address staging;  // GpuPasses::memory_bytes() of the plan
  const GpuEvents& passed;
};

class GpuReading {
 public:
  // `plan` outlives the reading. The caller may ask to cancel at `cancel`, or null.
  GpuReading(const GpuRing& ring, const GpuPlan& plan, const int32_t* cancel);

  // Reads with as many threads as have slots, the caller among them; the others on CPUs of `near`. Returns
  // when the GPU is done with the ring and the requests' memory, also if it throws: what a thread met,
  // GpuError, and Error::input for a checksum that differs.
  void run(const std::vector<int>& near);

 private:
  void read(const std::vector<int>& near);
  void work_in(size_t thread);
  void take(size_t index, size_t slot, LoadBuffers& buffers);
  // Does what is due for all threads, as far as no other thread does it.
  void go_on();
  // Goes on until the first `count` pieces are appended. Returns early after a failure.
  void await_appended(size_t count);
  // Relaxed: only says that no more work is wanted.
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_relaxed); }

  GpuRing ring_;
  const GpuPlan& plan_;
  GpuSlots slots_;
  GpuSums sums_;
  GpuPasses passes_;
  GpuSender sender_;

  // Relaxed: it only deals out numbers. The plan was complete before the threads began.
  std::atomic<size_t> next_{0};  // piece
  std::atomic<bool> failed_{false};
  const int32_t* cancel_;
  std::vector<CudaDriver::Address> targets_;  // by request, on the GPU
};

}  // namespace mxfp4
