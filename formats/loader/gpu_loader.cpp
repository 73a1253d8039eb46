#include "formats/loader/gpu_loader.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "formats/loader/xxh3_ptx.hpp"
#include "formats/os/near_cpus.hpp"

namespace mxfp4 {
namespace {

constexpr unsigned kNonBlocking = 1;     // CU_STREAM_NON_BLOCKING
constexpr unsigned kWithoutTiming = 2;   // CU_EVENT_DISABLE_TIMING
constexpr unsigned kForAllContexts = 1;  // CU_MEMHOSTREGISTER_PORTABLE
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr size_t kSlotsOfThread = 2;  // one that is copied, one that is filled
constexpr size_t kSumsOfSlot = 4;     // so many rings the other threads may be ahead of one
constexpr int64_t kSumBytes = kernels::kXxh3Lanes * sizeof(uint64_t);  // of a block
constexpr int64_t kSumsBytes = GpuLoader::kSlotBytes / ChecksumPart::kPeriod * kSumBytes;

// The GPU's context is the calling thread's while this lives.
class InContext {
 public:
  InContext(const CudaDriver& cuda, CudaDriver::Context context) : cuda_(cuda) {
    cuda.check(cuda.push_context(context), "cuCtxPushCurrent");
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
  ~InContext() {
    CudaDriver::Context popped = nullptr;
    cuda_.pop_context(&popped);
  }

 private:
  const CudaDriver& cuda_;
};

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

}  // namespace

// One call of read().
class GpuLoader::Reading {
 public:
  Reading(GpuLoader& loader, const BlobLoader& blob, std::span<const LoadRequest> requests,
          const LoadOptions& options)
      : loader_(loader),
        cuda_(loader.cuda_),
        blob_(blob),
        requests_(requests),
        options_(options),
        sums_(requests.size()) {
    for (size_t i = 0; i < requests.size(); ++i) {
      if (options.verify) blob.check_verifiable(requests[i]);
      places_.push_back(blob.place(requests[i].layer, requests[i].tensor));
      in_context(places_.back(), [&] { plan(i); });
    }
    sent_ = std::make_unique<std::atomic<bool>[]>(pieces_.size());
    parts_.resize(std::min(pieces_.size(), loader.summed_.size()));
  }

  // The work of one thread.
  void work() noexcept {
    const std::span<const Slot> slots = loader_.slots_of_thread(next_thread_++);
    if (slots.empty()) return;
    try {
      const InContext current(cuda_, loader_.context_);
      LoadBuffers buffers;
      size_t taken = 0;
      for (size_t i = next_++; i < pieces_.size() && !failed_; i = next_++, ++taken) {
        const Slot& slot = slots[taken % slots.size()];
        if (taken >= slots.size()) cuda_.check(cuda_.await(slot.copied), "cuEventSynchronize");
        take(i, slot, buffers);
      }
      if (!closing_.exchange(true)) await_sums(pieces_.size());
    } catch (...) {
      const std::scoped_lock lock(failure_mutex_);
      if (!failure_) failure_ = std::current_exception();
      failed_ = true;
    }
  }

  // After all threads: the GPU is done with the ring and the requests' memory, too.
  void finish() {
    const InContext current(cuda_, loader_.context_);
    const auto copies = cuda_.synchronize(loader_.copies_);
    const auto sums = cuda_.synchronize(loader_.sums_);
    if (failure_) std::rethrow_exception(failure_);
    cuda_.check(copies, "cuStreamSynchronize");
    cuda_.check(sums, "cuStreamSynchronize");
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (summed(i)) blob_.compare(requests_[i].layer, requests_[i].tensor, sums_[i].hex());
    }
  }

 private:
  struct Piece {
    LoadPiece piece;
    size_t request;
  };

  [[nodiscard]] bool summed(size_t request) const {
    return options_.verify && blob_.is_whole(requests_[request]);
  }

  void plan(size_t index) {
    const LoadRequest& request = requests_[index];
    if (summed(index) && std::bit_cast<uintptr_t>(request.out.data()) % sizeof(uint64_t) != 0) {
      throw Error::usage("memory on the GPU does not lie at a multiple of 8");
    }
    const auto bytes = static_cast<int64_t>(request.out.size());
    for (const LoadPiece& piece :
         blob_.pieces(request.layer, request.tensor, request.offset, bytes, kSlotBytes)) {
      pieces_.push_back({piece, index});
    }
  }

  // Reads a piece into a slot, and hands it to the GPU.
  void take(size_t index, const Slot& slot, LoadBuffers& buffers) {
    if (options_.cancel != nullptr && __atomic_load_n(options_.cancel, __ATOMIC_RELAXED) != 0) {
      throw Cancelled();
    }
    const auto& [piece, number] = pieces_[index];
    const LoadRequest& request = requests_[number];
    const MutableBytes bytes(slot.memory, static_cast<size_t>(piece.bytes));
    const bool checked = options_.verify && !summed(number);
    in_context(places_[number], [&, &piece = piece] {
      blob_.read_piece(request.layer, piece, bytes, buffers,
                       checked ? FrameCheck::kChecksums : FrameCheck::kSizes, nullptr);
    });
    const auto tensor = std::bit_cast<CudaDriver::Address>(request.out.data());
    cuda_.check(cuda_.copy_to_gpu(tensor + static_cast<uint64_t>(piece.begin - request.offset),
                                  bytes.data(), bytes.size(), loader_.copies_),
                "cuMemcpyHtoDAsync");
    cuda_.check(cuda_.record(slot.copied, loader_.copies_), "cuEventRecord");
    if (summed(number)) sum(index, slot, bytes, tensor);
    sent_[index] = true;
    append_arrived();
  }

  // Lets the GPU sum a piece behind its copy, and keeps of its bytes what the sum needs besides.
  void sum(size_t index, const Slot& slot, ConstBytes bytes, CudaDriver::Address tensor) {
    const size_t places = loader_.summed_.size();
    if (index >= places) await_sums(index - places + 1);  // the piece whose place this one takes
    if (failed_) return;
    const int64_t begin = pieces_[index].piece.begin;
    const int64_t block = ChecksumPart::first_block(begin);
    const int64_t behind = begin + static_cast<int64_t>(bytes.size()) - block;
    auto count = static_cast<uint64_t>(std::max<int64_t>(behind, 0) / ChecksumPart::kPeriod);
    const int64_t offset = loader_.sums_offset(index);
    const auto* sums = reinterpret_cast<const uint64_t*>(loader_.ring_ + offset);
    part_of(index).assemble(begin, bytes, {sums, count * kernels::kXxh3Lanes});
    const std::scoped_lock lock(sums_mutex_);
    cuda_.check(cuda_.wait_event(loader_.sums_, slot.copied, 0), "cuStreamWaitEvent");
    if (count > 0) {
      uint64_t in = tensor + static_cast<uint64_t>(block);
      uint64_t out = loader_.ring_address_ + static_cast<uint64_t>(offset);
      std::array<void*, 3> arguments = {&in, &count, &out};
      const auto groups =
          static_cast<unsigned>((count + kSumBlocksInGroup - 1) / kSumBlocksInGroup);
      cuda_.check(cuda_.launch(loader_.sum_blocks_, groups, 1, 1, kSumThreads, 1, 1, 0,
                               loader_.sums_, arguments.data(), nullptr),
                  "cuLaunchKernel");
    }
    cuda_.check(cuda_.record(loader_.summed_[index % places], loader_.sums_), "cuEventRecord");
  }

  // Whether the GPU has come past an event, which was recorded.
  [[nodiscard]] bool is_over(CudaDriver::Event event) const {
    const CudaDriver::Result result = cuda_.query(event);
    if (result == CudaDriver::kNotReady) return false;
    cuda_.check(result, "cuEventQuery");
    return true;
  }

  // Waits until the sums of the first `count` pieces are appended. Returns early after a failure.
  void await_sums(size_t count) {
    for (; appended_ < count && !failed_; std::this_thread::yield()) append_arrived();
  }

  // Appends the sums that have arrived to their tensors' checksums, in order, unless another thread
  // does.
  void append_arrived() {
    const std::unique_lock lock(append_mutex_, std::try_to_lock);
    if (!lock) return;
    for (size_t next = appended_; next < pieces_.size() && sent_[next]; appended_ = ++next) {
      const size_t request = pieces_[next].request;
      if (!summed(request)) continue;
      if (!is_over(loader_.summed_[next % loader_.summed_.size()])) return;
      sums_[request].append(part_of(next));
    }
  }

  [[nodiscard]] ChecksumPart& part_of(size_t piece) { return parts_[piece % parts_.size()]; }

  GpuLoader& loader_;
  const CudaDriver& cuda_;
  const BlobLoader& blob_;
  std::span<const LoadRequest> requests_;
  const LoadOptions& options_;
  std::vector<Checksum> sums_;       // by request
  std::vector<std::string> places_;  // by request: file and tensor
  std::vector<Piece> pieces_;
  std::unique_ptr<std::atomic<bool>[]> sent_;  // by piece: its events are recorded
  std::vector<ChecksumPart> parts_;            // of the last pieces, as many as there are sums of
  std::atomic<size_t> appended_{0};            // pieces
  std::atomic<size_t> next_{0};                // piece
  std::atomic<size_t> next_thread_{0};
  std::atomic<bool> closing_{false};  // a thread waits for the last sums
  std::atomic<bool> failed_{false};
  std::mutex append_mutex_;
  std::mutex sums_mutex_;  // what belongs to a piece stands together in the stream of sums
  std::mutex failure_mutex_;
  std::exception_ptr failure_;  // guarded by failure_mutex_
};

GpuLoader::GpuLoader(int device, int threads, int64_t ring_bytes) : cuda_(CudaDriver::get()) {
  if (ring_bytes < kLeastRing) {
    throw Error::usage(
        fmt::format("a ring of {} bytes: at least {} are needed", ring_bytes, kLeastRing));
  }
  slots_.resize(static_cast<size_t>(ring_bytes / kSlotBytes));
  slots_of_thread_ = std::max(kSlotsOfThread, slots_.size() / static_cast<size_t>(threads));
  summed_.resize(kSumsOfSlot * slots_.size());
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
  for (Slot& slot : slots_) {
    cuda_.check(cuda_.make_event(&slot.copied, kWithoutTiming), "cuEventCreate");
  }
  for (CudaDriver::Event& event : summed_) {
    cuda_.check(cuda_.make_event(&event, kWithoutTiming), "cuEventCreate");
  }
  cuda_.check(cuda_.load_module(&module_, sum_ptx().c_str()), "cuModuleLoadData");
  cuda_.check(cuda_.function(&sum_blocks_, module_, kSumKernel), "cuModuleGetFunction");

  std::array<char, 32> bus_id{};
  std::vector<int> near;
  if (cuda_.pci_bus_id(bus_id.data(), static_cast<int>(bus_id.size()), device_) == 0) {
    near = cpus_near("/", bus_id.data());
  }
  const int64_t bytes = sums_offset(0) + static_cast<int64_t>(summed_.size()) * kSumsBytes;
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
  for (size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].memory = ring_ + static_cast<int64_t>(i) * kSlotBytes;
  }
  team_.emplace(threads, [near] { run_on(near); });
}

GpuLoader::~GpuLoader() { close(); }

// Whatever fails here, there is nobody to tell.
void GpuLoader::close() noexcept {
  team_.reset();
  if (cuda_.push_context(context_) == 0) {
    if (ring_ != nullptr) cuda_.unregister_host(ring_);
    if (module_ != nullptr) cuda_.unload_module(module_);
    for (const Slot& slot : slots_) {
      if (slot.copied != nullptr) cuda_.destroy_event(slot.copied);
    }
    for (const CudaDriver::Event event : summed_) {
      if (event != nullptr) cuda_.destroy_event(event);
    }
    if (copies_ != nullptr) cuda_.destroy_stream(copies_);
    if (sums_ != nullptr) cuda_.destroy_stream(sums_);
    CudaDriver::Context popped = nullptr;
    cuda_.pop_context(&popped);
  }
  if (ring_ != nullptr) ::munmap(ring_, static_cast<size_t>(mapped_bytes_));
  cuda_.release_primary(device_);
}

std::span<const GpuLoader::Slot> GpuLoader::slots_of_thread(size_t thread) const {
  const size_t begin = thread * slots_of_thread_;
  if (begin + slots_of_thread_ > slots_.size()) return {};
  return std::span(slots_).subspan(begin, slots_of_thread_);
}

int64_t GpuLoader::sums_offset(size_t piece) const {
  return static_cast<int64_t>(slots_.size()) * kSlotBytes +
         static_cast<int64_t>(piece % summed_.size()) * kSumsBytes;
}

void GpuLoader::read(const BlobLoader& blob, std::span<const LoadRequest> requests,
                     const LoadOptions& options) {
  const std::scoped_lock lock(busy_);
  Reading reading(*this, blob, requests, options);
  team_->run([&] { reading.work(); });
  reading.finish();
}

}  // namespace mxfp4
