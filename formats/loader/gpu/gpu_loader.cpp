#include "formats/loader/gpu/gpu_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "formats/os/near_cpus.hpp"
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

GpuLoader::GpuLoader(int device, int threads, int64_t ring_bytes)
    : gpu_(device),
      ring_threads_(ring_parts(ring_bytes, kThreadBytes, threads)),
      ring_(gpu_,
            GpuLoader::ring_bytes() + GpuSums::sum_bytes(kRingsAhead * GpuLoader::ring_bytes())),
      copied_(gpu_, GpuSender::kUnderWay),
      summed_(gpu_, sum_places(kPlainSlot)),
      parts_(summed_.count()),
      team_(threads, [near = gpu_.near_cpus()] { run_on(near); }) {}

GpuLoader::~GpuLoader() { stop(); }

void GpuLoader::read(const BlobLoader& blob, std::span<const LoadRequest> requests,
                     const LoadOptions& options) {
  const std::scoped_lock lock(busy_);
  throw_if_cancelled(options.cancel);
  if (options.verify) check_addresses(blob, requests);
  if (begun_ == nullptr || !begun_->is_of(blob, requests, options.verify)) {
    start(blob, requests, options.verify);
  }
  const std::unique_ptr<GpuReading> reading = std::move(begun_);
  reading->send_to(requests, options.cancel);
  reading->work();
  reading->await_sums();
  team_.join();
  reading->finish();
}

void GpuLoader::begin(const BlobLoader& blob, std::span<const LoadRequest> requests,
                      const LoadOptions& options) {
  const std::scoped_lock lock(busy_);
  const bool placed = std::ranges::none_of(requests, [](const LoadRequest& request) {
    return request.out.data() == nullptr && !request.out.empty();
  });
  if (placed && options.verify) check_addresses(blob, requests);
  if (begun_ == nullptr || !begun_->is_of(blob, requests, options.verify)) {
    start(blob, requests, options.verify);
  }
  if (placed) begun_->send_to(requests, nullptr);
}

void GpuLoader::discard() {
  const std::scoped_lock lock(busy_);
  stop();
}

void GpuLoader::start(const BlobLoader& blob, std::span<const LoadRequest> requests, bool verify) {
  stop();
  GpuPlan plan(blob, requests, verify, ring_threads_, kPlainSlot, kFrameSlot);
  const size_t places = sum_places(plan.slot_bytes());
  const GpuSumRoom sums = {.memory = ring_.data() + ring_bytes(),
                           .address = ring_.address() + static_cast<uint64_t>(ring_bytes()),
                           .summed = &summed_,
                           .parts = &parts_};
  const GpuRing ring = {gpu_, ring_.data(), ring_threads_, kThreadBytes, copied_, sums, places};
  begun_ = std::make_unique<GpuReading>(ring, std::move(plan));
  team_.start([reading = begun_.get()] { reading->work(); });
}

void GpuLoader::stop() {
  if (begun_ == nullptr) return;
  begun_->stop();
  team_.join();
  begun_->await_gpu();
  begun_.reset();
}

}  // namespace mxfp4
