// The functions of mxfp4_repack.h that bring tensors to a GPU.
#include <bit>
#include <memory>
#include <span>

#include "formats/loader/c_api_arguments.hpp"
#include "formats/loader/c_api_status.hpp"
#include "formats/loader/gpu/gpu_in_place.hpp"
#include "formats/loader/gpu/gpu_loader.hpp"
#include "formats/loader/mxfp4_repack.h"

// One of both.
struct mxfp4_repack_gpu {
  std::unique_ptr<mxfp4::GpuLoader> ring;
  std::unique_ptr<mxfp4::GpuInPlace> in_place;
};

namespace {

constexpr int64_t kUsualRing = int64_t{64} << 20;

}  // namespace

mxfp4_repack_status mxfp4_repack_gpu_open(int32_t device, const mxfp4_repack_gpu_options* options,
                                          mxfp4_repack_gpu** gpu) {
  if (gpu != nullptr) *gpu = nullptr;
  return mxfp4::guarded([&] {
    mxfp4::require(gpu != nullptr, "gpu_open: a null pointer");
    mxfp4_repack_gpu_options known{};
    mxfp4::take(options, known);
    mxfp4::require(device >= 0, "gpu_open: device is negative");
    mxfp4::require(known.ring_bytes >= 0, "gpu_open: ring_bytes is negative");
    mxfp4::require(known.ranks >= 0, "gpu_open: ranks is negative");
    mxfp4::require(known.makes >= 0 && known.makes <= 2, "gpu_open: makes is not 0, 1 or 2");
    const int64_t ring = known.ring_bytes == 0 ? kUsualRing : known.ring_bytes;
    const int threads = mxfp4::checked_threads(known.threads);
    auto made = std::make_unique<mxfp4_repack_gpu>();
    if (known.in_place != 0) {
      made->in_place = std::make_unique<mxfp4::GpuInPlace>(device, threads);
    } else {
      made->ring = std::make_unique<mxfp4::GpuLoader>(device, threads, ring, known.ranks,
                                                      static_cast<mxfp4::GpuPass>(known.makes));
    }
    *gpu = made.release();
  });
}

mxfp4_repack_status mxfp4_repack_gpu_read(mxfp4_repack_gpu* gpu, const mxfp4_repack_blob* blob,
                                          const mxfp4_repack_request* requests, size_t num_requests,
                                          const mxfp4_repack_read_options* options) {
  return mxfp4::guarded([&] {
    mxfp4::require(gpu != nullptr && blob != nullptr, "gpu_read: a null pointer");
    const mxfp4::LoadOptions checked_options = mxfp4::options_of(options);
    const auto checked = mxfp4::checked_requests(blob->loader, requests, num_requests);
    if (gpu->in_place != nullptr)
      return gpu->in_place->read(blob->loader, checked, checked_options);
    gpu->ring->read(blob->loader, checked, checked_options);
  });
}

mxfp4_repack_status mxfp4_repack_gpu_begin(mxfp4_repack_gpu* gpu, const mxfp4_repack_blob* blob,
                                           const mxfp4_repack_request* requests,
                                           size_t num_requests,
                                           const mxfp4_repack_read_options* options) {
  return mxfp4::guarded([&] {
    mxfp4::require(gpu != nullptr && blob != nullptr, "gpu_begin: a null pointer");
    const mxfp4::LoadOptions checked_options = mxfp4::options_of(options);
    const auto checked =
        mxfp4::checked_requests(blob->loader, requests, num_requests, mxfp4::RequestMemory::kLater);
    if (gpu->ring != nullptr) gpu->ring->begin(blob->loader, checked, checked_options);
  });
}

mxfp4_repack_status mxfp4_repack_gpu_discard(mxfp4_repack_gpu* gpu) {
  return mxfp4::guarded([&] {
    mxfp4::require(gpu != nullptr, "gpu_discard: a null pointer");
    if (gpu->ring != nullptr) gpu->ring->discard();
  });
}

mxfp4_repack_status mxfp4_repack_gpu_make(mxfp4_repack_gpu* gpu, const mxfp4_repack_blob* blob,
                                          const mxfp4_repack_request* requests, size_t num_requests,
                                          const mxfp4_repack_held* held, size_t num_held) {
  return mxfp4::guarded([&] {
    mxfp4::require(blob != nullptr, "gpu_make: the blob is null");
    mxfp4::require(held != nullptr || num_held == 0, "gpu_make: held is null");
    mxfp4::require(gpu == nullptr || gpu->ring != nullptr, "gpu_make: the GPU is in place");
    mxfp4::HeldTensors tensors;
    for (const mxfp4_repack_held& one : std::span(held, num_held)) {
      mxfp4::require(one.name != nullptr && one.bytes >= 0, "gpu_make: held: no name, or bytes");
      tensors[one.name] = {std::bit_cast<mxfp4::CudaDriver::Address>(one.memory), one.bytes};
    }
    const auto checked = mxfp4::checked_requests(
        blob->loader, requests, num_requests,
        gpu == nullptr ? mxfp4::RequestMemory::kLater : mxfp4::RequestMemory::kNow);
    if (gpu != nullptr) return gpu->ring->make(blob->loader, checked, tensors);
    for (const auto& request : checked) (void)held_work(blob->loader, request, tensors);
  });
}

const char* mxfp4_repack_gpu_made_by(const mxfp4_repack_gpu* gpu) {
  if (gpu == nullptr || gpu->ring == nullptr) return "";
  return gpu->ring->made_by().c_str();
}

void mxfp4_repack_gpu_close(mxfp4_repack_gpu* gpu) { delete gpu; }
