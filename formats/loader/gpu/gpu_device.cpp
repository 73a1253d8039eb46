#include "formats/loader/gpu/gpu_device.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <array>
#include <bit>
#include <cstring>
#include <thread>

#include "formats/loader/gpu/gpu_kernels.hpp"
#include "formats/os/near_cpus.hpp"

namespace mxfp4 {
namespace {

constexpr unsigned kNonBlocking = 1;     // CU_STREAM_NON_BLOCKING
constexpr unsigned kWithoutTiming = 2;   // CU_EVENT_DISABLE_TIMING
constexpr unsigned kForAllContexts = 1;  // CU_MEMHOSTREGISTER_PORTABLE
constexpr int64_t kHugePage = int64_t{2} << 20;

CudaDriver::Device find_device(const CudaDriver& cuda, int number) {
  CudaDriver::Device device = 0;
  cuda.check(cuda.device(&device, number), "cuDeviceGet");
  return device;
}

// `bytes`, a multiple of huge pages, in huge pages where the system has them: reads into such
// memory and copies out of it both take less time than with small ones. Where pages have 64 KiB,
// huge ones have 512 MiB: the advice has no effect there, and is needed less. Throws GpuError.
std::byte* map_huge(int64_t bytes) {
  const auto size = static_cast<size_t>(bytes + kHugePage);
  void* const mapped =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw GpuError(fmt::format("no memory for a ring of {} bytes", bytes));
  auto* const begin = static_cast<std::byte*>(mapped);
  const auto skip = static_cast<size_t>(-std::bit_cast<intptr_t>(begin) & (kHugePage - 1));
  if (skip > 0) ::munmap(begin, skip);
  std::byte* const aligned = begin + skip;
  const size_t behind = size - skip - static_cast<size_t>(bytes);
  if (behind > 0) ::munmap(aligned + bytes, behind);
  ::madvise(aligned, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return aligned;
}

}  // namespace

GpuDevice::GpuDevice(const CudaDriver& cuda, CudaDriver::Device device)
    : cuda_(cuda), device_(device) {
  cuda.check(cuda.retain_primary(&context_, device), "cuDevicePrimaryCtxRetain");
}

// The other constructor has ended before the body begins: where the body throws, the destructor
// gives back what was made until then.
GpuDevice::GpuDevice(int number)
    : GpuDevice(CudaDriver::get(), find_device(CudaDriver::get(), number)) {
  const InContext current(cuda_, context_);
  cuda_.check(cuda_.make_stream(&copies_, kNonBlocking), "cuStreamCreate");
  cuda_.check(cuda_.make_stream(&kernels_, kNonBlocking), "cuStreamCreate");
  cuda_.check(cuda_.load_module(&module_, kSumText), "cuModuleLoadData");
  cuda_.check(cuda_.function(&sum_blocks_, module_, kSumKernel), "cuModuleGetFunction");
  gather_ = std::async([this] {
              const InContext own(cuda_, context_);
              CudaDriver::Function gather = nullptr;
              try {
                cuda_.check(cuda_.load_module(&gather_module_, kGatherText), "cuModuleLoadData");
                cuda_.check(cuda_.function(&gather, gather_module_, kGatherKernel),
                            "cuModuleGetFunction");
              } catch (const GpuError& error) {
                throw NoKernel(error.what());
              }
              return gather;
            }).share();
  std::array<char, 32> bus_id{};
  if (cuda_.pci_bus_id(bus_id.data(), static_cast<int>(bus_id.size()), device_) == 0) {
    near_cpus_ = cpus_near("/", bus_id.data());
  }
}

GpuDevice::~GpuDevice() {
  if (gather_.valid()) gather_.wait();
  give_back([&] {
    if (module_ != nullptr) cuda_.unload_module(module_);
    if (gather_module_ != nullptr) cuda_.unload_module(gather_module_);
    if (copies_ != nullptr) cuda_.destroy_stream(copies_);
    if (kernels_ != nullptr) cuda_.destroy_stream(kernels_);
  });
  cuda_.release_primary(device_);
}

PinnedMemory::PinnedMemory(const GpuDevice& gpu, int64_t bytes)
    : gpu_(gpu), bytes_((bytes + kHugePage - 1) / kHugePage * kHugePage) {
  data_ = map_huge(bytes_);
  try {
    pin();
  } catch (...) {
    unmap();
    throw;
  }
}

void PinnedMemory::pin() {
  // Memory lies near the thread that touches it first.
  std::jthread([&] {
    run_on(gpu_.near_cpus());
    std::memset(data_, 0, static_cast<size_t>(bytes_));
  }).join();
  const CudaDriver& cuda = gpu_.cuda();
  const InContext current(cuda, gpu_.context());
  cuda.check(cuda.register_host(data_, static_cast<size_t>(bytes_), kForAllContexts),
             "cuMemHostRegister");
  cuda.check(cuda.host_address(&address_, data_, 0), "cuMemHostGetDevicePointer");
}

PinnedMemory::~PinnedMemory() { unmap(); }

// Memory that was not registered is refused, without harm.
void PinnedMemory::unmap() noexcept {
  gpu_.give_back([&] { gpu_.cuda().unregister_host(data_); });
  ::munmap(data_, static_cast<size_t>(bytes_));
}

GpuMemory::GpuMemory(const GpuDevice& gpu, int64_t bytes) : gpu_(gpu), bytes_(bytes) {
  const InContext current(gpu.cuda(), gpu.context());
  gpu.cuda().check(gpu.cuda().allocate(&address_, static_cast<size_t>(bytes)), "cuMemAlloc");
}

GpuMemory::~GpuMemory() {
  gpu_.give_back([&] { gpu_.cuda().free(address_); });
}

GpuEvents::GpuEvents(const GpuDevice& gpu, size_t count) : gpu_(gpu), events_(count) {
  const CudaDriver& cuda = gpu.cuda();
  const InContext current(cuda, gpu.context());
  try {
    for (CudaDriver::Event& event : events_) {
      cuda.check(cuda.make_event(&event, kWithoutTiming), "cuEventCreate");
    }
  } catch (...) {
    destroy();
    throw;
  }
}

GpuEvents::~GpuEvents() { destroy(); }

void GpuEvents::destroy() noexcept {
  gpu_.give_back([&] {
    for (const CudaDriver::Event event : events_) {
      if (event != nullptr) gpu_.cuda().destroy_event(event);
    }
  });
}

bool is_over(const CudaDriver& cuda, CudaDriver::Event event) {
  const CudaDriver::Result result = cuda.query(event);
  if (result == CudaDriver::kNotReady) return false;
  cuda.check(result, "cuEventQuery");
  return true;
}

}  // namespace mxfp4
