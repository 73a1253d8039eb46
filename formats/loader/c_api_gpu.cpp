// The functions of mxfp4_repack.h that bring tensors to a GPU.
#include <bit>
#include <span>

#include "formats/loader/c_api_arguments.hpp"
#include "formats/loader/c_api_status.hpp"
#include "formats/loader/gpu/gpu_loader.hpp"
#include "formats/loader/mxfp4_repack.h"

struct mxfp4_repack_gpu {
  mxfp4::GpuLoader loader;
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
    *gpu = new mxfp4_repack_gpu{
        {device, threads, ring, known.ranks, static_cast<mxfp4::GpuPass>(known.makes)}};
  });
}

mxfp4_repack_status mxfp4_repack_gpu_read(mxfp4_repack_gpu* gpu, const mxfp4_repack_blob* blob,
                                          const mxfp4_repack_request* requests, size_t num_requests,
                                          const mxfp4_repack_read_options* options) {
  return mxfp4::guarded([&] {
    mxfp4::require(gpu != nullptr && blob != nullptr, "gpu_read: a null pointer");
    const mxfp4::LoadOptions checked_options = mxfp4::options_of(options);
    const auto checked = mxfp4::checked_requests(blob->loader, requests, num_requests);
    gpu->loader.read(blob->loader, checked, checked_options);
  });
}

mxfp4_repack_status mxfp4_repack_gpu_make(mxfp4_repack_gpu* gpu, const mxfp4_repack_blob* blob,
                                          const mxfp4_repack_request* requests, size_t num_requests,
                                          const mxfp4_repack_held* held, size_t num_held) {
  return mxfp4::guarded([&] {
    mxfp4::require(blob != nullptr, "gpu_make: the blob is null");
    mxfp4::require(held != nullptr || num_held == 0, "gpu_make: held is null");
    mxfp4::HeldTensors tensors;
    for (const mxfp4_repack_held& one : std::span(held, num_held)) {
      mxfp4::require(one.name != nullptr && one.bytes >= 0, "gpu_make: held: no name, or bytes");
      tensors[one.name] = {std::bit_cast<mxfp4::CudaDriver::Address>(one.memory), one.bytes};
    }
    const auto checked = mxfp4::checked_requests(
        blob->loader, requests, num_requests,
        gpu == nullptr ? mxfp4::RequestMemory::kLater : mxfp4::RequestMemory::kNow);
    if (gpu != nullptr) return gpu->loader.make(blob->loader, checked, tensors);
    for (const auto& request : checked) (void)held_work(blob->loader, request, tensors);
  });
}

const char* mxfp4_repack_gpu_made_by(const mxfp4_repack_gpu* gpu) {
  return gpu == nullptr ? "" : gpu->loader.made_by().c_str();
}

void mxfp4_repack_gpu_close(mxfp4_repack_gpu* gpu) { delete gpu; }
