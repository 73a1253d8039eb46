// Reads tensors to memory that CPUs and a GPU share, where they are to lie: mxfp4_repack_gpu_read
// with in_place. Threads read, or make, each piece at its place, so there is neither a ring nor a
// copy. What the CPUs wrote is there for all work that is given to the GPU afterwards.
// scripts/python/README.md weighs both ways.
#pragma once

#include <span>

#include "formats/loader/gpu/gpu_device.hpp"
#include "formats/loader/load_source.hpp"

namespace mxfp4 {

class GpuInPlace {
 public:
  // `device` and `threads` mean what they mean to a GpuLoader. Throws GpuError.
  GpuInPlace(int device, int threads) : gpu_(device), threads_(threads) {}

  // The same as GpuLoader::read(), at any address; the CPUs sum what is verified. Throws
  // Error::usage for memory that is not shared.
  void read(const LoadSource& source, std::span<const LoadRequest> requests,
            const LoadOptions& options) const;

 private:
  GpuDevice gpu_;
  int threads_;
};

}  // namespace mxfp4
