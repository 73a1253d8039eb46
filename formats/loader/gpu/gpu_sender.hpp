// Hands full slots to the GPU's copy engine, several at once, and frees them when they are copied.
#pragma once

#include <array>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "formats/loader/gpu/gpu_device.hpp"
#include "formats/loader/gpu/gpu_passes.hpp"
#include "formats/loader/gpu/gpu_plan.hpp"
#include "formats/loader/gpu/gpu_slots.hpp"
#include "formats/loader/gpu/gpu_sums.hpp"

namespace mxfp4 {

class GpuSender {
 public:
  // Copies that the engine has: one that it makes, and the next. What is read meanwhile
  // goes together.
  static constexpr size_t kUnderWay = 2;

  // `copied`: kUnderWay events.
  GpuSender(const GpuDevice& gpu, const GpuPlan& plan, const GpuEvents& copied, GpuSlots& slots,
            GpuSums& sums, GpuPasses& passes)
      : gpu_(gpu), plan_(plan), copied_(copied), slots_(slots), sums_(sums), passes_(passes) {}

  // A piece was read, and may be sent.
  void add(const FullSlot& full);
  // Hands what was read to the GPU, unless the GPU has enough to do or another thread does it. The
  // pieces go to `targets`, by request. Throws GpuError.
  void send(std::span<const CudaDriver::Address> targets);

 private:
  void free_copied();
  // The pieces of the next copy, which leave the queue. Those that have no room yet stay.
  void take_full(std::vector<FullSlot>& pieces);
  [[nodiscard]] size_t most_at_once() const;
  void copy(std::span<const FullSlot> pieces, std::span<const CudaDriver::Address> targets);

  const GpuDevice& gpu_;
  const GpuPlan& plan_;
  const GpuEvents& copied_;
  GpuSlots& slots_;
  GpuSums& sums_;
  GpuPasses& passes_;  // guarded by send_mutex_

  std::mutex full_mutex_;
  std::deque<FullSlot> full_;  // that the GPU has not got

  std::mutex send_mutex_;                                     // guards what follows
  size_t handed_ = 0;                                         // pieces that the GPU got
  size_t copies_ = 0;                                         // that the GPU got
  size_t copies_over_ = 0;                                    // of them
  std::array<std::vector<FullSlot>, kUnderWay> under_way_{};  // by copy, modulo their number
};

}  // namespace mxfp4
