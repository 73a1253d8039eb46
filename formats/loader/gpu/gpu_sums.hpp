// The checksums of what arrives: the GPU sums the blocks of each piece behind its copy, from its
// own memory, and writes the sums into pinned memory. They are appended to their tensors' checksums
// piece by piece, in order, by whichever thread comes by.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "formats/checksum/checksum.hpp"
#include "formats/loader/gpu/gpu_device.hpp"
#include "formats/loader/gpu/gpu_plan.hpp"
#include "lib/kernels/xxh3_blocks.hpp"

namespace mxfp4 {

// Room for the sums of the last pieces, kept from one reading to the next.
struct GpuSumRoom {
  std::byte* memory = nullptr;                 // pinned, where the GPU puts the sums
  CudaDriver::Address address = 0;             // of `memory`, for the GPU
  const GpuEvents* summed = nullptr;           // one for each place
  std::vector<ChecksumPart>* parts = nullptr;  // likewise: a piece's part of its tensor's checksum
};

class GpuSums {
 public:
  // Bytes of the sums of a checksum's blocks that lie in `bytes` bytes.
  static constexpr int64_t sum_bytes(int64_t bytes) {
    constexpr auto kBytesOfBlock = static_cast<int64_t>(kernels::kXxh3Lanes * sizeof(uint64_t));
    return bytes / ChecksumPart::kPeriod * kBytesOfBlock;
  }

  // There is room for the sums of `places` pieces.
  GpuSums(const GpuDevice& gpu, const GpuPlan& plan, const GpuSumRoom& room, size_t places);

  // How many pieces must be appended before piece `index` may be started: that piece takes the
  // place of an older one.
  [[nodiscard]] size_t needed_before(size_t index) const {
    return index >= places_ ? index - places_ + 1 : 0;
  }
  // Whether the first `count` pieces are appended. Acquire, with append_arrived()'s release: who
  // takes a place writes there after the older piece was appended.
  [[nodiscard]] bool has_appended(size_t count) const {
    return appended_.load(std::memory_order_acquire) >= count;
  }

  // Sums the bytes of a piece that belong to no whole block, before the piece is handed on. Needs
  // needed_before(index).
  void start(size_t index, ConstBytes bytes);
  // Lets the GPU sum pieces that lie, or will lie, at `targets`, by request, once `copied` is over.
  // One call at a time.
  void sum_behind(CudaDriver::Event copied, std::span<const FullSlot> pieces,
                  std::span<const CudaDriver::Address> targets);
  // Appends the sums that have arrived, unless another thread does.
  void append_arrived();

  // After all: throws Error::input for a checksum that differs.
  void compare() const;

 private:
  // Where the GPU puts a piece's sums, from the room's begin on.
  [[nodiscard]] int64_t offset_of(size_t piece) const;
  [[nodiscard]] ChecksumPart& part_of(size_t piece) { return (*room_.parts)[piece % places_]; }

  const GpuDevice& gpu_;
  const GpuPlan& plan_;
  GpuSumRoom room_;
  size_t places_;
  std::vector<Checksum> sums_;               // by request; guarded by append_mutex_
  std::vector<CudaDriver::Event> event_of_;  // by place: the sums are there when it is over
  // By piece: its event is recorded and is in event_of_. Release and acquire hand that over from
  // the thread that sends to the thread that appends, which share no mutex.
  std::unique_ptr<std::atomic<bool>[]> sent_;
  std::mutex append_mutex_;
  std::atomic<size_t> appended_{0};  // pieces
};

}  // namespace mxfp4
