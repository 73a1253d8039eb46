// Tensors that the GPU makes from a checkpoint's own, which lie in its memory already: an engine was
// sent them by a trainer. Their parts lie one behind the other mostly, and are read where they are;
// else granules are put together in the staging area.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "formats/loader/gpu/gpu_device.hpp"
#include "formats/loader/load_source.hpp"

namespace mxfp4 {

// Bytes of the GPU's memory.
struct GpuRun {
  CudaDriver::Address from = 0;
  int64_t bytes = 0;
};
using HeldTensors = std::map<std::string, GpuRun, std::less<>>;  // by the checkpoint's names

// What one request needs.
struct HeldWork {
  HeldPass pass;
  std::vector<GpuRun> runs;  // raw granules, in order
  CudaDriver::Address out;
};

// See GpuLoader::make.
[[nodiscard]] HeldWork held_work(const LoadSource& source, const LoadRequest& request,
                                 const HeldTensors& held);
[[nodiscard]] int64_t held_memory_bytes(std::span<const HeldWork> work);
// Returns when all is made. `memory`: held_memory_bytes() bytes. Throws GpuError.
void make_from_held(const GpuDevice& gpu, std::span<const HeldWork> work,
                    CudaDriver::Address memory);

}  // namespace mxfp4
