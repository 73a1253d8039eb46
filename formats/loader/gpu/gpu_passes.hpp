// The passes of a reading: raw granules are copied to a staging area on the GPU, and a kernel
// behind the copies makes the tensor from them. The area is smaller than the tensors: groups of
// granules take turns in it, in order.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "formats/loader/gpu/gpu_device.hpp"
#include "formats/loader/gpu/gpu_plan.hpp"

namespace mxfp4 {

// Bytes of GPU memory that a gather plan takes.
[[nodiscard]] int64_t plan_bytes(const GatherPlan& plan);
// Copies a plan to `to`. Throws GpuError; so does the next.
void copy_plan(const GpuDevice& gpu, const GatherPlan& plan, CudaDriver::Address to);
// Lets the GPU's stream of kernels make `granules` granules, which lie one behind the other at `in`, at
// `out`. `words`: where the plan was copied to.
void launch_gather(const GpuDevice& gpu, const GatherPlan& plan, CudaDriver::Address words,
                   CudaDriver::Address in, CudaDriver::Address out, int64_t granules);

class GpuPasses {
 public:
  // Groups whose passes the GPU may have at once: events of the loader.
  static constexpr size_t kUnderWay = 256;

  // Bytes of GPU memory that the passes of a plan need; 0 without any.
  [[nodiscard]] static int64_t memory_bytes(const GpuPlan& plan);

  // `memory`: memory_bytes() bytes; `passed`: kUnderWay events. Copies the gather plans there.
  // Throws GpuError.
  GpuPasses(const GpuDevice& gpu, const GpuPlan& plan, CudaDriver::Address memory,
            const GpuEvents& passed);

  // What follows is called by one thread at a time.

  // Whether a piece may be copied. The first group that is not made always may.
  [[nodiscard]] bool has_room(const GpuPlan::Piece& piece) const;
  // Where a group's piece is copied to.
  [[nodiscard]] CudaDriver::Address place_of(const GpuPlan::Piece& piece) const;
  // Lets the GPU make the groups that these pieces complete, once what its stream of kernels waits
  // for is over.
  void make_behind(std::span<const FullSlot> pieces, std::span<const CudaDriver::Address> targets);
  // Frees the places of groups that are made. Throws GpuError.
  void free_made();

 private:
  void launch(size_t group, CudaDriver::Address target);

  const GpuDevice& gpu_;
  const GpuPlan& plan_;
  CudaDriver::Address staging_;
  const GpuEvents& passed_;
  std::map<const GatherPlan*, CudaDriver::Address> plans_;
  std::vector<size_t> missing_;  // by group: pieces that are not on their way
  size_t made_ = 0;              // the first groups, whose places are free
};

}  // namespace mxfp4
