// Moves tensors of a blob to the memory of an NVIDIA GPU: what stands behind mxfp4_repack_gpu_read.
//
// A ring of pinned memory has a few slots, and a slot holds a run: consecutive bytes of one tensor.
// Every thread reads pieces, in order; the one that reads the last piece of a run hands the run to the
// GPU's copy engine, and goes on. A thread whose slot is still being copied waits for that copy. So no
// thread stands between the readers and the copy engine, and while there is something to read the
// engine has work.
//
// Checksums cost the CPUs nothing: the GPU sums the blocks of each run after its copy, from its own
// memory, and writes the sums, a sixteenth of the bytes, back into the ring. So they also prove what
// arrived.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "formats/loader/blob_loader.hpp"
#include "formats/loader/cuda_driver.hpp"
#include "lib/exec/team.hpp"

namespace mxfp4 {

class GpuLoader {
 public:
  static constexpr int64_t kRunBytes = int64_t{8} << 20;

  // device: the driver's number of the GPU, as CUDA_VISIBLE_DEVICES counts; its primary context is
  // used. threads: readers, the caller of read() included. ring_bytes: of pinned memory, rounded down
  // to runs, three at least; an eighth more is taken for sums. Memory and threads are placed near
  // the GPU where the system says what is near. Throws GpuError, and Error::usage for what is too
  // little.
  GpuLoader(int device, int threads, int64_t ring_bytes);
  GpuLoader(const GpuLoader&) = delete;
  GpuLoader& operator=(const GpuLoader&) = delete;
  ~GpuLoader();

  // As BlobLoader::read, but `out` of a request is memory of the GPU, which no work of the GPU uses
  // meanwhile. All bytes have arrived when it returns; when it throws, nothing is written any more.
  // With options.verify whole tensors lie at multiples of 8. options.threads is not heeded. One call
  // runs at a time, others wait. Throws what BlobLoader::read throws, and GpuError.
  void read(const BlobLoader& blob, std::span<const LoadRequest> requests,
            const LoadOptions& options);

 private:
  class Reading;
  struct Slot {
    CudaDriver::Event copied = nullptr;
    CudaDriver::Event done = nullptr;  // copied, and summed where sums are wanted
  };

  void open(int threads);
  void close() noexcept;
  // Where a run lies in the ring.
  [[nodiscard]] std::byte* slot(size_t run) const;
  // Where the GPU puts a run's sums, from ring_ on. There is room for twice as many as there are slots.
  [[nodiscard]] int64_t sums_offset(size_t run) const;

  const CudaDriver& cuda_;
  CudaDriver::Device device_ = 0;
  CudaDriver::Context context_ = nullptr;
  CudaDriver::Stream copies_ = nullptr;
  CudaDriver::Stream sums_ = nullptr;
  CudaDriver::Module module_ = nullptr;
  CudaDriver::Function sum_blocks_ = nullptr;
  std::vector<Slot> slots_;
  std::byte* ring_ = nullptr;
  int64_t mapped_bytes_ = 0;              // from ring_ on
  CudaDriver::Address ring_address_ = 0;  // of ring_, for the GPU
  std::optional<Team> team_;
  std::mutex busy_;
};

}  // namespace mxfp4
