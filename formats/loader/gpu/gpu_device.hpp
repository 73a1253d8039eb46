// What the loader keeps of one NVIDIA GPU from one reading to the next: the driver's context, two
// streams, kernels, events, and memory. Each object gives back what it took.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <vector>

#include "formats/loader/gpu/cuda_driver.hpp"

namespace mxfp4 {

// A GPU's primary context, with streams and kernels of the loader's own.
class GpuDevice {
 public:
  // `number`: the driver's number of the GPU, as CUDA_VISIBLE_DEVICES counts. Throws GpuError.
  explicit GpuDevice(int number);
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;
  ~GpuDevice();

  [[nodiscard]] const CudaDriver& cuda() const { return cuda_; }
  [[nodiscard]] CudaDriver::Context context() const { return context_; }
  [[nodiscard]] CudaDriver::Stream copies() const { return copies_; }
  [[nodiscard]] CudaDriver::Stream kernels() const { return kernels_; }
  [[nodiscard]] CudaDriver::Function sum_blocks() const { return sum_blocks_; }
  // The driver takes a quarter of a second to compile it, unless it kept it from another process. It does
  // so beside other work, and this waits for it. Throws NoKernel.
  [[nodiscard]] CudaDriver::Function gather() const { return gather_.get(); }
  // CPUs near the GPU; empty where the system does not say.
  [[nodiscard]] const std::vector<int>& near_cpus() const { return near_cpus_; }

  // Calls `action` in the context. For destructors: without the context nothing is called, and
  // nobody hears what fails.
  template <class Action>
  void give_back(const Action& action) const noexcept {
    if (cuda_.push_context(context_) != 0) return;
    action();
    CudaDriver::Context popped = nullptr;
    cuda_.pop_context(&popped);
  }

 private:
  GpuDevice(const CudaDriver& cuda, CudaDriver::Device device);

  const CudaDriver& cuda_;
  CudaDriver::Device device_;
  CudaDriver::Context context_ = nullptr;
  CudaDriver::Stream copies_ = nullptr;
  CudaDriver::Stream kernels_ = nullptr;
  CudaDriver::Module module_ = nullptr;
  CudaDriver::Function sum_blocks_ = nullptr;
  CudaDriver::Module gather_module_ = nullptr;  // set before gather_
  std::shared_future<CudaDriver::Function> gather_{};
  std::vector<int> near_cpus_;
};

// Memory that the GPU's copy engine reads and its kernels write, in huge pages where the system has
// them, near the GPU.
class PinnedMemory {
 public:
  // `gpu` outlives this. Throws GpuError.
  PinnedMemory(const GpuDevice& gpu, int64_t bytes);
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory();

  [[nodiscard]] std::byte* data() const { return data_; }
  // The GPU's address of data().
  [[nodiscard]] CudaDriver::Address address() const { return address_; }

 private:
  void pin();
  void unmap() noexcept;

  const GpuDevice& gpu_;
  int64_t bytes_;
  std::byte* data_ = nullptr;
  CudaDriver::Address address_ = 0;
};

// Memory of the GPU's own.
class GpuMemory {
 public:
  // `gpu` outlives this. Throws GpuError.
  GpuMemory(const GpuDevice& gpu, int64_t bytes);
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  ~GpuMemory();

  [[nodiscard]] CudaDriver::Address address() const { return address_; }
  [[nodiscard]] int64_t bytes() const { return bytes_; }

 private:
  const GpuDevice& gpu_;
  int64_t bytes_;
  CudaDriver::Address address_ = 0;
};

// Events for things that are numbered on and on, of which only the last `count` are looked at.
class GpuEvents {
 public:
  // `gpu` outlives this. Throws GpuError.
  GpuEvents(const GpuDevice& gpu, size_t count);
  GpuEvents(const GpuEvents&) = delete;
  GpuEvents& operator=(const GpuEvents&) = delete;
  ~GpuEvents();

  [[nodiscard]] size_t count() const { return events_.size(); }
  [[nodiscard]] CudaDriver::Event of(size_t number) const {
    return events_[number % events_.size()];
  }

 private:
  void destroy() noexcept;

  const GpuDevice& gpu_;
  std::vector<CudaDriver::Event> events_;
};

// Whether the GPU has come past an event, which was recorded. Throws GpuError.
[[nodiscard]] bool is_over(const CudaDriver& cuda, CudaDriver::Event event);

}  // namespace mxfp4
