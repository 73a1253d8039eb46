#include "formats/loader/gpu/gpu_held.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "formats/loader/gpu/gpu_passes.hpp"
#include "formats/loader/gpu/gpu_plan.hpp"
#include "formats/os/input_fault.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// Copies `bytes` bytes to `to`, the next ones of the runs from byte `used` of the first one on.
void put_together(const GpuDevice& gpu, std::span<const GpuRun>& runs, int64_t& used,
                  CudaDriver::Address to, int64_t bytes) {
  while (bytes > 0) {
    const int64_t part = std::min(bytes, runs.front().bytes - used);
    gpu.cuda().check(gpu.cuda().copy_on_gpu(to, runs.front().from + static_cast<uint64_t>(used),
                                            static_cast<size_t>(part), gpu.kernels()),
                     "cuMemcpyDtoDAsync");
    to += static_cast<uint64_t>(part);
    bytes -= part;
    used += part;
    if (used == runs.front().bytes) {
      runs = runs.subspan(1);
      used = 0;
    }
  }
}

}  // namespace

HeldWork held_work(const LoadSource& source, const LoadRequest& request, const HeldTensors& held) {
  const std::string place = source.place(request.layer, request.tensor);
  return in_context(place, [&] {
    if (static_cast<int64_t>(request.out.size()) !=
        source.tensor_bytes(request.layer, request.tensor)) {
      throw Error::usage("is made whole");
    }
    HeldWork work{source.held_pass(request.layer, request.tensor),
                  {},
                  std::bit_cast<CudaDriver::Address>(request.out.data())};
    for (const HeldPass::Part& part : work.pass.parts) {
      const auto at = held.find(part.tensor);
      if (at == held.end()) {
        throw InputFault(Fault::kMissing, fmt::format("{} is not there", part.tensor));
      }
      if (at->second.bytes != part.tensor_bytes) {
        throw InputFault(Fault::kSize,
                         fmt::format("{} has {} bytes, the checkpoint's {}", part.tensor,
                                     at->second.bytes, part.tensor_bytes));
      }
      const GpuRun run = {at->second.from + static_cast<uint64_t>(part.offset), part.bytes};
      if (!work.runs.empty() &&
          work.runs.back().from + static_cast<uint64_t>(work.runs.back().bytes) == run.from) {
        work.runs.back().bytes += run.bytes;
      } else {
        work.runs.push_back(run);
      }
    }
    if (work.runs.size() > 1 && raw_bytes(*work.pass.plan) > GpuPlan::kStagingBytes) {
      throw Error::unsupported("one expert is more than the staging area holds");
    }
    return work;
  });
}

int64_t held_memory_bytes(std::span<const HeldWork> work) {
  int64_t bytes = GpuPlan::kStagingBytes;
  for (const HeldWork& one : work) bytes += plan_bytes(*one.pass.plan);
  return bytes;
}

void make_from_held(const GpuDevice& gpu, std::span<const HeldWork> work,
                    CudaDriver::Address memory) {
  const InContext current(gpu.cuda(), gpu.context());
  const CudaDriver::Address at = memory + static_cast<uint64_t>(GpuPlan::kStagingBytes);
  std::vector<CudaDriver::Address> plans;
  GatherPlan all;  // one copy costs less than one for each
  for (const HeldWork& one : work) {
    plans.push_back(at + all.size() * sizeof(uint32_t));
    const size_t end =
        all.size() + static_cast<size_t>(plan_bytes(*one.pass.plan)) / sizeof(uint32_t);
    all.insert(all.end(), one.pass.plan->begin(), one.pass.plan->end());
    all.resize(end);
  }
  copy_plan(gpu, all, at);
  for (size_t i = 0; i < work.size(); ++i) {
    const GatherPlan& plan = *work[i].pass.plan;
    std::span<const GpuRun> runs = work[i].runs;
    const bool in_place = runs.size() == 1;
    const int64_t at_once =
        in_place ? work[i].pass.granules : GpuPlan::kStagingBytes / raw_bytes(plan);
    int64_t used = 0;
    for (int64_t first = 0; first < work[i].pass.granules; first += at_once) {
      const int64_t count = std::min(at_once, work[i].pass.granules - first);
      if (!in_place) put_together(gpu, runs, used, memory, count * raw_bytes(plan));
      launch_gather(gpu, plan, plans[i], in_place ? runs.front().from : memory,
                    work[i].out + static_cast<uint64_t>(first * made_bytes(plan)), count);
    }
  }
  gpu.cuda().check(gpu.cuda().synchronize(gpu.kernels()), "cuStreamSynchronize");
}

}  // namespace mxfp4
