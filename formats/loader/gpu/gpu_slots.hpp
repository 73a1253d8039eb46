// The ring: slots of pinned memory. Each belongs to one thread, the only one that fills it, so a
// thread that the system stops for a while holds up nothing but its own slots.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace mxfp4 {

class GpuSlots {
 public:
  // `memory` holds `threads` times `per_thread` slots.
  GpuSlots(std::byte* memory, size_t threads, size_t per_thread, int64_t slot_bytes)
      : memory_(memory),
        per_thread_(per_thread),
        slot_bytes_(slot_bytes),
        used_(std::make_unique<std::atomic<bool>[]>(threads * per_thread)) {}

  // The slot that a thread takes after it has taken `taken` others.
  [[nodiscard]] size_t slot_of(size_t thread, size_t taken) const {
    return thread * per_thread_ + taken % per_thread_;
  }
  [[nodiscard]] std::byte* memory_of(size_t slot) const {
    return memory_ + static_cast<int64_t>(slot) * slot_bytes_;
  }

  // Whether a slot holds bytes that may still have to be copied. For the slot's thread. Acquire,
  // with free()'s release: the thread's next write to the slot comes after the copy that freed it.
  [[nodiscard]] bool is_used(size_t slot) const {
    return used_[slot].load(std::memory_order_acquire);
  }
  // For the slot's thread, while the slot is free. Relaxed: only this thread asks is_used(), and
  // the thread that calls free() has got the slot's number by way of the sender's mutex.
  void take(size_t slot) { used_[slot].store(true, std::memory_order_relaxed); }
  // For any thread, once the copy of the slot's bytes is over.
  void free(size_t slot) { used_[slot].store(false, std::memory_order_release); }

 private:
  std::byte* memory_;
  size_t per_thread_;
  int64_t slot_bytes_;
  std::unique_ptr<std::atomic<bool>[]> used_;  // by slot
};

}  // namespace mxfp4
