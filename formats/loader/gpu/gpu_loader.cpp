#include "formats/loader/gpu/gpu_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// Parts of a ring of `ring_bytes` bytes at most. Throws Error::usage for what is too little.
size_t ring_parts(int64_t ring_bytes, int64_t part_bytes, int64_t threads) {
  if (ring_bytes < part_bytes) {
    throw Error::usage(
        fmt::format("a ring of {} bytes: at least {} are needed", ring_bytes, part_bytes));
  }
  return static_cast<size_t>(std::min(ring_bytes / part_bytes, threads));
}

// What the GPU sums has to lie so that it can load words. Throws Error::usage.
void check_addresses(const LoadSource& source, std::span<const LoadRequest> requests) {
  for (const LoadRequest& request : requests) {
    if (source.has_checksum(request) &&
        std::bit_cast<uintptr_t>(request.out.data()) % sizeof(uint64_t) != 0) {
      throw Error::usage(fmt::format("{}: memory on the GPU does not lie at a multiple of 8",
                                     source.place(request.layer, request.tensor)));
    }
  }
}

}  // namespace

GpuLoader::GpuLoader(int device, int threads, int64_t ring_bytes, int ranks, GpuPass pass)
    : gpu_(device),
      near_(gpu_.near_cpus()),
      threads_(ring_parts(ring_bytes, kThreadBytes, threads)),
      used_bytes_(ranks > kFewRanks ? kThreadBytes / 2 : kThreadBytes),
      sum_memory_(gpu_, GpuSums::sum_bytes(bytes_ahead())),
      pass_(pass),
      copied_(gpu_, GpuSender::kUnderWay),
      passed_(gpu_, GpuPasses::kUnderWay),
      summed_(gpu_, static_cast<size_t>(bytes_ahead() / kLeastPiece)),
      parts_(summed_.count()),
      buffers_(threads_) {
  fit_ring(static_cast<int64_t>(threads_) * kThreadBytes);
}

void GpuLoader::read(const LoadSource& source, std::span<const LoadRequest> requests,
                     const LoadOptions& options) {
  const std::scoped_lock lock(busy_);
  throw_if_cancelled(options.cancel);
  if (options.verify) check_addresses(source, requests);
  source.expect(requests);
  try {
    read_once(source, requests, options);
  } catch (const NoKernel& error) {
    if (pass_ != GpuPass::kEither) throw;
    no_kernel_ = error.what();
    read_once(source, requests, options);
  }
}

GpuLoader::Parts GpuLoader::parts_of(int64_t slot_bytes) const {
  const auto fit = [&](int64_t bytes) { return static_cast<size_t>(bytes / slot_bytes); };
  const size_t slots = std::max(fit(used_bytes_), kLeastSlots);
  if (threads_ * slots <= fit(kMostRing)) return {threads_, slots};
  return {std::min(threads_, fit(kMostRing)), 1};
}

void GpuLoader::fit_ring(int64_t bytes) {
  if (ring_ != nullptr && ring_bytes_ >= bytes) return;
  ring_.reset();
  ring_ = std::make_unique<PinnedMemory>(gpu_, bytes);
  ring_bytes_ = bytes;
}

size_t GpuLoader::sum_places(const GpuPlan& plan) const {
  const int64_t least = plan.sums_any() ? plan.slot_bytes() : kLeastPiece;
  return std::clamp(static_cast<size_t>(bytes_ahead() / least), size_t{1}, summed_.count());
}

GpuPlan GpuLoader::plan_for(const LoadSource& source, std::span<const LoadRequest> requests,
                            bool verify) {
  const auto plan = [&](bool on_gpu) {
    return GpuPlan(source, requests, verify, threads_, std::min(kMostSlot, bytes_ahead()), on_gpu);
  };
  made_by_.clear();
  GpuPlan made = plan(true);
  const int64_t bytes = GpuPasses::memory_bytes(made);
  if (bytes == 0) return made;
  if (pass_ == GpuPass::kCpus || !no_kernel_.empty()) {
    made_by_ = no_kernel_.empty() ? "CPUs" : fmt::format("CPUs: {}", no_kernel_);
    return plan(false);
  }
  made_by_ = "the GPU";
  try {
    fit_staging(bytes);
  } catch (const GpuError& error) {
    if (pass_ == GpuPass::kGpu) throw;
    made_by_ = fmt::format("CPUs: {}", error.what());
    return plan(false);
  }
  return made;
}

void GpuLoader::fit_staging(int64_t bytes) {
  if (staging_ != nullptr && staging_->bytes() >= bytes) return;
  staging_.reset();
  staging_ = std::make_unique<GpuMemory>(gpu_, bytes);
}

void GpuLoader::make(const LoadSource& source, std::span<const LoadRequest> requests,
                     const HeldTensors& held) {
  const std::scoped_lock lock(busy_);
  std::vector<HeldWork> work;
  for (const LoadRequest& request : requests) work.push_back(held_work(source, request, held));
  fit_staging(held_memory_bytes(work));
  make_from_held(gpu_, work, staging_->address());
}

void GpuLoader::read_once(const LoadSource& source, std::span<const LoadRequest> requests,
                          const LoadOptions& options) {
  const GpuPlan plan = plan_for(source, requests, options.verify);
  const Parts parts = parts_of(plan.slot_bytes());
  fit_ring(static_cast<int64_t>(parts.threads * parts.slots) * plan.slot_bytes());
  const GpuSumRoom sums = {.memory = sum_memory_.data(),
                           .address = sum_memory_.address(),
                           .summed = &summed_,
                           .parts = &parts_};
  const GpuRing ring = {
      gpu_,        ring_->data(),    parts.threads,
      parts.slots, buffers_,         copied_,
      sums,        sum_places(plan), staging_ == nullptr ? 0 : staging_->address(),
      passed_};
  GpuReading(ring, plan, options.cancel).run(near_);
}

}  // namespace mxfp4
