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
constexpr int64_t kLeastSlots = 3;       // one that is copied, one that is filled, one between them
constexpr int64_t kHugePage = int64_t{2} << 20;
// Bytes of a plain file that a thread reads at a time: few, so that a run is full soon.
constexpr int64_t kPlainPiece = int64_t{1} << 20;
constexpr int64_t kSumBytes = kernels::kXxh3Lanes * sizeof(uint64_t);  // of a block
constexpr int64_t kSumsOfRun = GpuLoader::kRunBytes / ChecksumPart::kPeriod * kSumBytes;

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
    states_ = std::make_unique<State[]>(runs_.size());
    for (size_t i = 0; i < runs_.size(); ++i) states_[i].missing = runs_[i].pieces;
    parts_.resize(std::min(runs_.size(), 2 * loader.slots_.size()));
    next_end_ = runs_.size() - std::min(runs_.size(), loader.slots_.size());
  }

  // The work of one thread.
  void work() noexcept {
    try {
      const InContext current(cuda_, loader_.context_);
      LoadBuffers buffers;
      for (size_t i = next_++; i < pieces_.size() && !failed_; i = next_++)
        take(pieces_[i], buffers);
      for (size_t i = next_end_++; i < runs_.size() && !failed_; i = next_end_++) end_run(i);
    } catch (...) {
      const std::scoped_lock lock(mutex_);
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
    size_t run;
    size_t at;  // in the run
  };
  struct Run {
    size_t request;
    int64_t begin;  // in the tensor
    int64_t bytes;
    size_t pieces;
  };
  // What threads tell each other of a run.
  struct State {
    std::atomic<size_t> missing{0};  // pieces
    std::atomic<bool> sent{false};   // its events are recorded
    std::atomic<bool> taken{false};  // by the thread that sees to its sum
    std::atomic<bool> free{false};   // its slot may be filled anew
    bool arrived = false;            // its part can be appended; guarded by mutex_
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
    const int64_t limit = blob_.is_compressed(request.layer) ? kRunBytes : kPlainPiece;
    bool first = true;
    for (const LoadPiece& piece :
         blob_.pieces(request.layer, request.tensor, request.offset, bytes, limit)) {
      if (first || runs_.back().bytes + piece.bytes > kRunBytes) {
        runs_.push_back({.request = index, .begin = piece.begin, .bytes = 0, .pieces = 0});
      }
      first = false;
      Run& run = runs_.back();
      pieces_.push_back({piece, runs_.size() - 1, static_cast<size_t>(run.bytes)});
      run.bytes += piece.bytes;
      ++run.pieces;
    }
  }

  [[nodiscard]] MutableBytes place(size_t run) const {
    return {loader_.slot(run), static_cast<size_t>(runs_[run].bytes)};
  }

  void take(const Piece& piece, LoadBuffers& buffers) {
    if (options_.cancel != nullptr && __atomic_load_n(options_.cancel, __ATOMIC_RELAXED) != 0) {
      throw Cancelled();
    }
    if (piece.run >= loader_.slots_.size()) end_run(piece.run - loader_.slots_.size());
    if (failed_) return;
    const Run& run = runs_[piece.run];
    const LoadRequest& request = requests_[run.request];
    const bool checked = options_.verify && !summed(run.request);
    in_context(places_[run.request], [&] {
      blob_.read_piece(request.layer, piece.piece,
                       place(piece.run).subspan(piece.at, static_cast<size_t>(piece.piece.bytes)),
                       buffers, checked ? FrameCheck::kChecksums : FrameCheck::kSizes, nullptr);
    });
    if (--states_[piece.run].missing == 0) send(piece.run);
  }

  // Hands a full run to the GPU.
  void send(size_t index) {
    const Run& run = runs_[index];
    const LoadRequest& request = requests_[run.request];
    const Slot& slot = loader_.slots_[index % loader_.slots_.size()];
    const auto tensor = std::bit_cast<CudaDriver::Address>(request.out.data());
    const MutableBytes from = place(index);
    cuda_.check(cuda_.copy_to_gpu(tensor + static_cast<uint64_t>(run.begin - request.offset),
                                  from.data(), from.size(), loader_.copies_),
                "cuMemcpyHtoDAsync");
    const size_t before = 2 * loader_.slots_.size();  // the run whose part and sums end here
    while (index >= before && appended_ <= index - before) {
      if (failed_) return;
      std::this_thread::yield();
    }
    const int64_t blocks = summed(run.request) ? whole_blocks(run) : 0;
    if (blocks > 0) {
      cuda_.check(cuda_.record(slot.copied, loader_.copies_), "cuEventRecord");
      cuda_.check(cuda_.wait_event(loader_.sums_, slot.copied, 0), "cuStreamWaitEvent");
      uint64_t in = tensor + static_cast<uint64_t>(ChecksumPart::first_block(run.begin));
      auto count = static_cast<uint64_t>(blocks);
      uint64_t out = loader_.ring_address_ + static_cast<uint64_t>(loader_.sums_offset(index));
      std::array<void*, 3> arguments = {&in, &count, &out};
      const auto groups =
          static_cast<unsigned>((count + kSumBlocksInGroup - 1) / kSumBlocksInGroup);
      cuda_.check(cuda_.launch(loader_.sum_blocks_, groups, 1, 1, kSumThreads, 1, 1, 0,
                               loader_.sums_, arguments.data(), nullptr),
                  "cuLaunchKernel");
    }
    cuda_.check(cuda_.record(slot.done, blocks > 0 ? loader_.sums_ : loader_.copies_),
                "cuEventRecord");
    states_[index].sent = true;
  }

  // Blocks of the checksum that lie in the run as a whole.
  [[nodiscard]] static int64_t whole_blocks(const Run& run) {
    const int64_t behind = run.begin + run.bytes - ChecksumPart::first_block(run.begin);
    return std::max<int64_t>(behind, 0) / ChecksumPart::kPeriod;
  }

  // Waits until the run has arrived and its slot is free. One of the threads that come here keeps its
  // sums before. Returns early after a failure.
  void end_run(size_t index) {
    State& state = states_[index];
    while (!state.sent) {
      if (failed_) return;
      std::this_thread::yield();
    }
    cuda_.check(cuda_.await(loader_.slots_[index % loader_.slots_.size()].done),
                "cuEventSynchronize");
    if (state.taken.exchange(true)) {
      while (!state.free && !failed_) std::this_thread::yield();
      return;
    }
    const Run& run = runs_[index];
    if (summed(run.request)) {
      const auto* sums =
          reinterpret_cast<const uint64_t*>(loader_.ring_ + loader_.sums_offset(index));
      part_of(index).assemble(run.begin, place(index),
                              {sums, static_cast<size_t>(whole_blocks(run)) * kernels::kXxh3Lanes});
    }
    state.free = true;
    append_arrived(index);
  }

  // Appends the parts of this run and of those behind it that have arrived, in order.
  void append_arrived(size_t index) {
    const std::scoped_lock lock(mutex_);
    states_[index].arrived = true;
    size_t next = appended_;
    for (; next < runs_.size() && states_[next].arrived; appended_ = ++next) {
      const size_t request = runs_[next].request;
      if (summed(request)) sums_[request].append(part_of(next));
    }
  }

  [[nodiscard]] ChecksumPart& part_of(size_t run) { return parts_[run % parts_.size()]; }

  GpuLoader& loader_;
  const CudaDriver& cuda_;
  const BlobLoader& blob_;
  std::span<const LoadRequest> requests_;
  const LoadOptions& options_;
  std::vector<Checksum> sums_;       // by request
  std::vector<std::string> places_;  // by request: file and tensor
  std::vector<Run> runs_;
  std::vector<Piece> pieces_;
  std::unique_ptr<State[]> states_;  // by run
  std::vector<ChecksumPart> parts_;  // of the last runs, as many as there are sums of
  std::atomic<size_t> appended_{0};  // runs
  std::atomic<size_t> next_{0};      // piece
  std::atomic<size_t> next_end_{0};  // of the runs that no later one waits for
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

GpuLoader::GpuLoader(int device, int threads, int64_t ring_bytes) : cuda_(CudaDriver::get()) {
  if (ring_bytes / kRunBytes < kLeastSlots) {
    throw Error::usage(fmt::format("a ring of {} bytes: at least {} are needed", ring_bytes,
                                   kLeastSlots * kRunBytes));
  }
  slots_.resize(static_cast<size_t>(ring_bytes / kRunBytes));
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
    cuda_.check(cuda_.make_event(&slot.done, kWithoutTiming), "cuEventCreate");
  }
  cuda_.check(cuda_.load_module(&module_, sum_ptx().c_str()), "cuModuleLoadData");
  cuda_.check(cuda_.function(&sum_blocks_, module_, kSumKernel), "cuModuleGetFunction");

  std::array<char, 32> bus_id{};
  std::vector<int> near;
  if (cuda_.pci_bus_id(bus_id.data(), static_cast<int>(bus_id.size()), device_) == 0) {
    near = cpus_near("/", bus_id.data());
  }
  const auto slots = static_cast<int64_t>(slots_.size());
  const int64_t bytes = slots * (kRunBytes + 2 * kSumsOfRun);
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
  team_.reset();
  if (cuda_.push_context(context_) == 0) {
    if (ring_ != nullptr) cuda_.unregister_host(ring_);
    if (module_ != nullptr) cuda_.unload_module(module_);
    for (const Slot& slot : slots_) {
      if (slot.copied != nullptr) cuda_.destroy_event(slot.copied);
      if (slot.done != nullptr) cuda_.destroy_event(slot.done);
    }
    if (copies_ != nullptr) cuda_.destroy_stream(copies_);
    if (sums_ != nullptr) cuda_.destroy_stream(sums_);
    CudaDriver::Context popped = nullptr;
    cuda_.pop_context(&popped);
  }
  if (ring_ != nullptr) ::munmap(ring_, static_cast<size_t>(mapped_bytes_));
  cuda_.release_primary(device_);
}

std::byte* GpuLoader::slot(size_t run) const {
  return ring_ + static_cast<int64_t>(run % slots_.size()) * kRunBytes;
}

int64_t GpuLoader::sums_offset(size_t run) const {
  const auto slots = static_cast<int64_t>(slots_.size());
  return slots * kRunBytes + static_cast<int64_t>(run % (2 * slots_.size())) * kSumsOfRun;
}

void GpuLoader::read(const BlobLoader& blob, std::span<const LoadRequest> requests,
                     const LoadOptions& options) {
  const std::scoped_lock lock(busy_);
  Reading reading(*this, blob, requests, options);
  team_->run([&] { reading.work(); });
  reading.finish();
}

}  // namespace mxfp4
