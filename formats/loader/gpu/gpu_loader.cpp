#include "formats/loader/gpu/gpu_loader.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <thread>
#include <utility>

#include "formats/loader/gpu/gpu_reading.hpp"
#include "formats/loader/gpu/xxh3_ptx.hpp"
#include "formats/os/near_cpus.hpp"

namespace mxfp4 {
namespace {

constexpr unsigned kNonBlocking = 1;     // CU_STREAM_NON_BLOCKING
constexpr unsigned kWithoutTiming = 2;   // CU_EVENT_DISABLE_TIMING
constexpr unsigned kForAllContexts = 1;  // CU_MEMHOSTREGISTER_PORTABLE
constexpr int64_t kHugePage = int64_t{2} << 20;

// Memory in huge pages, where the system has them: the reads into it and the copies out of it both
// take less time than with small ones. Throws GpuError.
std::byte* map_ring(int64_t bytes) {
  const auto size = static_cast<size_t>(bytes + kHugePage);
  void* const mapped =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw GpuError(fmt::format("no memory for a ring of {} bytes", bytes));
  auto* const begin = static_cast<std::byte*>(mapped);
  const auto skip = static_cast<size_t>(-std::bit_cast<intptr_t>(begin) & (kHugePage - 1));
  if (skip > 0) ::munmap(begin, skip);
  std::byte* const ring = begin + skip;
  const size_t behind = size - skip - static_cast<size_t>(bytes);
  if (behind > 0) ::munmap(ring + bytes, behind);
  ::madvise(ring, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return ring;
}

// What the GPU sums has to lie so that it can load words. Throws Error::usage.
void check_addresses(const BlobLoader& blob, std::span<const LoadRequest> requests) {
  for (const LoadRequest& request : requests) {
    if (blob.is_whole(request) &&
        std::bit_cast<uintptr_t>(request.out.data()) % sizeof(uint64_t) != 0) {
      throw Error::usage(fmt::format("{}: memory on the GPU does not lie at a multiple of 8",
                                     blob.place(request.layer, request.tensor)));
    }
  }
}

}  // namespace

GpuLoader::GpuLoader(int device, int threads, int64_t ring_bytes) : cuda_(CudaDriver::get()) {
  if (ring_bytes < kLeastRing) {
    throw Error::usage(
        fmt::format("a ring of {} bytes: at least {} are needed", ring_bytes, kLeastRing));
  }
  ring_threads_ = static_cast<size_t>(std::min<int64_t>(ring_bytes / kThreadBytes, threads));
  copied_.resize(kUnderWay);
  summed_.resize(static_cast<size_t>(kRingsAhead * GpuLoader::ring_bytes() / kPlainSlot));
  parts_.resize(summed_.size());
  cuda_.check(cuda_.device(&device_, device), "cuDeviceGet");
  cuda_.check(cuda_.retain_primary(&context_, device_), "cuDevicePrimaryCtxRetain");
  try {
    open(threads);
  } catch (...) {
    close();
    throw;
  }
}

void GpuLoader::open(int threads) {
  const InContext current(cuda_, context_);
  cuda_.check(cuda_.make_stream(&copies_, kNonBlocking), "cuStreamCreate");
  cuda_.check(cuda_.make_stream(&sums_, kNonBlocking), "cuStreamCreate");
  for (std::vector<CudaDriver::Event>* const events : {&copied_, &summed_}) {
    for (CudaDriver::Event& event : *events) {
      cuda_.check(cuda_.make_event(&event, kWithoutTiming), "cuEventCreate");
    }
  }
  cuda_.check(cuda_.load_module(&module_, sum_ptx().c_str()), "cuModuleLoadData");
  cuda_.check(cuda_.function(&sum_blocks_, module_, kSumKernel), "cuModuleGetFunction");

  std::array<char, 32> bus_id{};
  std::vector<int> near;
  if (cuda_.pci_bus_id(bus_id.data(), static_cast<int>(bus_id.size()), device_) == 0) {
    near = cpus_near("/", bus_id.data());
  }
  const int64_t bytes = ring_bytes() + sum_bytes(kRingsAhead * ring_bytes());
  mapped_bytes_ = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  ring_ = map_ring(mapped_bytes_);
  // Memory lies near the thread that touches it first.
  std::jthread([&] {
    run_on(near);
    std::memset(ring_, 0, static_cast<size_t>(mapped_bytes_));
  }).join();
  cuda_.check(cuda_.register_host(ring_, static_cast<size_t>(mapped_bytes_), kForAllContexts),
              "cuMemHostRegister");
  cuda_.check(cuda_.host_address(&ring_address_, ring_, 0), "cuMemHostGetDevicePointer");
  team_.emplace(threads, [near] { run_on(near); });
}

GpuLoader::~GpuLoader() { close(); }

// Whatever fails here, there is nobody to tell.
void GpuLoader::close() noexcept {
  stop();
  team_.reset();
  if (cuda_.push_context(context_) == 0) {
    if (ring_ != nullptr) cuda_.unregister_host(ring_);
    if (module_ != nullptr) cuda_.unload_module(module_);
    for (const std::vector<CudaDriver::Event>* const events : {&copied_, &summed_}) {
      for (const CudaDriver::Event event : *events) {
        if (event != nullptr) cuda_.destroy_event(event);
      }
    }
    if (copies_ != nullptr) cuda_.destroy_stream(copies_);
    if (sums_ != nullptr) cuda_.destroy_stream(sums_);
    CudaDriver::Context popped = nullptr;
    cuda_.pop_context(&popped);
  }
  if (ring_ != nullptr) ::munmap(ring_, static_cast<size_t>(mapped_bytes_));
  cuda_.release_primary(device_);
}

void GpuLoader::read(const BlobLoader& blob, std::span<const LoadRequest> requests,
                     const LoadOptions& options) {
  const std::scoped_lock lock(busy_);
  throw_if_cancelled(options.cancel);
  if (options.verify) check_addresses(blob, requests);
  if (begun_ == nullptr || !begun_->is_of(blob, requests, options)) start(blob, requests, options);
  const std::unique_ptr<Reading> reading = std::move(begun_);
  reading->send_to(requests, options.cancel);
  reading->work();
  reading->await_sums();
  team_->join();
  reading->finish();
}

void GpuLoader::begin(const BlobLoader& blob, std::span<const LoadRequest> requests,
                      const LoadOptions& options) {
  const std::scoped_lock lock(busy_);
  const bool placed = std::ranges::none_of(requests, [](const LoadRequest& request) {
    return request.out.data() == nullptr && !request.out.empty();
  });
  if (placed && options.verify) check_addresses(blob, requests);
  if (begun_ == nullptr || !begun_->is_of(blob, requests, options)) start(blob, requests, options);
  if (placed) begun_->send_to(requests, nullptr);
}

void GpuLoader::discard() {
  const std::scoped_lock lock(busy_);
  stop();
}

void GpuLoader::start(const BlobLoader& blob, std::span<const LoadRequest> requests,
                      const LoadOptions& options) {
  stop();
  begun_ = std::make_unique<Reading>(*this, blob, requests, options);
  team_->start([reading = begun_.get()] { reading->work(); });
}

void GpuLoader::stop() {
  if (begun_ == nullptr) return;
  begun_->stop();
  team_->join();
  begun_->await_gpu();
  begun_.reset();
}

}  // namespace mxfp4
