// Moves tensors of a blob to the memory of an NVIDIA GPU: mxfp4_repack_gpu_read.
//
// Every thread has some slots of a ring of pinned memory. It reads a piece of a tensor into one,
// and goes on with the next; it waits only when all of its slots are still to be copied. So one
// that the system stops for a while holds up nothing but its own slots, until the others are four
// rings ahead.
//
// What a checkpoint's layout has to make, the GPU makes (GpuPasses), unless the layout has no plan
// for that, it is compared with a checksum of a blob, the GPU has no memory for raw granules, or its
// driver no way to compile the kernel; then the threads do, into their slots. Measured on an H200
// with 16 CPUs, gpt-oss-120b's sizes: 0.95 to 1.01 of a pinned copy with 14 threads, where CPUs make
// 0.43 to 0.67.
//
// Whoever comes by hands what was read to the GPU's copy engine, several pieces at once. The engine
// stands still for 3 us between two copies, a fourteenth of the time when each has 2 MiB, but not
// between the pieces of one. Drivers before CUDA 12.8 get them one by one.
//
// While the CPUs read, the engine is some 4 % slower than by itself: it reads what lies in their
// caches. No way around them was faster (H100 and H200 hosts): not past the caches, where the memory
// has twice the traffic; not with the file's own pages, which the driver pins under a lock that stops
// the other threads' copies; not with io_uring; not with two streams of copies at once; not with
// write-combined memory, which a virtual machine keeps cached.
//
// Checksums cost the CPUs little: the GPU sums the blocks of each piece after its copy, from its
// own memory, and writes the sums, a sixteenth of the bytes, back into pinned memory. So they also
// prove what arrived. Whichever thread comes by appends the sums that are due, in order.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "formats/checksum/checksum.hpp"
#include "formats/loader/gpu/gpu_device.hpp"
#include "formats/loader/gpu/gpu_held.hpp"
#include "formats/loader/gpu/gpu_reading.hpp"
#include "formats/loader/load_source.hpp"

namespace mxfp4 {

// kEither: the GPU, unless it has no memory or no kernel for it. kGpu: GpuError then.
enum class GpuPass : uint8_t { kEither, kCpus, kGpu };

class GpuLoader {
 public:
  static constexpr int64_t kLeastRing = int64_t{4} << 20;

  // device: the driver's number of the GPU, as CUDA_VISIBLE_DEVICES counts; its primary context is
  // used. threads: readers, the caller of read() included; those for whom the ring has no part do
  // nothing. ring_bytes: of pinned memory at most, kLeastRing or more; 4 MiB a thread are taken,
  // and a quarter more for sums. What CPUs make needs room for two granules a thread: the ring grows
  // for it, to kMostRing at most, and stays so. ranks: processes
  // of this host that load at once; with more than kFewRanks a thread fills half of its part from a
  // plain blob, so that all rings fit into the caches together. Memory and threads are placed near
  // the GPU where the system says what is near. Throws GpuError, and Error::usage for what is
  // too little.
  // pass: who makes what a checkpoint's layout has to make.
  GpuLoader(int device, int threads, int64_t ring_bytes, int ranks, GpuPass pass);
  GpuLoader(const GpuLoader&) = delete;
  GpuLoader& operator=(const GpuLoader&) = delete;

  // The same as LoadSource::read, but `out` of a request is memory of the GPU, which no work of the
  // GPU uses meanwhile. All bytes have arrived when it returns; when it throws, nothing is written
  // any more. With options.verify whole tensors lie at multiples of 8. options.threads is not
  // heeded. One call runs at a time, others wait. Throws what LoadSource::read throws,
  // and GpuError.
  void read(const LoadSource& source, std::span<const LoadRequest> requests,
            const LoadOptions& options);
  // Makes whole tensors of `source` from those of its checkpoint that lie in the GPU's memory, and on
  // which no work of the GPU is under way. Nothing is written where one of them is missing. Throws what
  // LoadSource::held_pass throws, InputFault for a tensor that is missing or has another size, GpuError.
  void make(const LoadSource& source, std::span<const LoadRequest> requests,
            const HeldTensors& held);
  // Who made what the last read() had to make, for a log: "the GPU", "CPUs: cuMemAlloc:
  // out of memory (2)"; empty where nothing was to be made. Lives until the next call.
  [[nodiscard]] const std::string& made_by() const { return made_by_; }

 private:
  static constexpr int64_t kMostRing = int64_t{256} << 20;
  // A larger piece is cut, though its parts then cost more to make.
  static constexpr int64_t kMostSlot = int64_t{64} << 20;
  // One thread's part of the ring. More was slower: it fits less well into the caches.
  static constexpr int64_t kThreadBytes = kLeastRing;
  static constexpr int kFewRanks = 2;
  static constexpr size_t kLeastSlots = 2;  // of a thread: one is filled while the other is copied
  static constexpr int64_t kLeastPiece = int64_t{1} << 20;  // of a blob, mostly
  // That the other threads may be ahead of one.
  static constexpr int64_t kRingsAhead = 4;

  // One try of read(), with busy_ held.
  void read_once(const LoadSource& source, std::span<const LoadRequest> requests,
                 const LoadOptions& options);
  // Takes GPU memory for passes unless that much is there.
  void fit_staging(int64_t bytes);
  // How many threads have slots, and how many each, of `slot_bytes` bytes.
  struct Parts {
    size_t threads;
    size_t slots;
  };
  [[nodiscard]] Parts parts_of(int64_t slot_bytes) const;
  [[nodiscard]] GpuPlan plan_for(const LoadSource& source, std::span<const LoadRequest> requests,
                                 bool verify);
  // Makes a larger ring unless there is one of `bytes` bytes.
  void fit_ring(int64_t bytes);
  // Bytes that may be on their way at once, and whose sums are kept.
  [[nodiscard]] int64_t bytes_ahead() const {
    return kRingsAhead * static_cast<int64_t>(threads_) * kThreadBytes;
  }
  // Pieces whose sums are kept. The events limit them where nothing is summed.
  [[nodiscard]] size_t sum_places(const GpuPlan& plan) const;

  GpuDevice gpu_;
  std::vector<int> near_;               // CPUs that are near the GPU
  size_t threads_;                      // that have slots of the ring
  int64_t used_bytes_;                  // of a thread's part, unless kLeastSlots need more
  PinnedMemory sum_memory_;             // where the GPU puts the sums
  std::unique_ptr<PinnedMemory> ring_;  // null after it could not be made
  int64_t ring_bytes_ = 0;
  std::unique_ptr<GpuMemory> staging_;  // null until something is made on the GPU
  GpuPass pass_;
  std::string no_kernel_;  // why the GPU makes nothing, though it may
  std::string made_by_;
  GpuEvents copied_;                  // by copy, modulo their number
  GpuEvents passed_;                  // by group, modulo their number
  GpuEvents summed_;                  // by piece, modulo their number
  std::vector<ChecksumPart> parts_;   // likewise: of the last pieces
  std::vector<LoadBuffers> buffers_;  // by thread
  std::mutex busy_;
};

}  // namespace mxfp4
