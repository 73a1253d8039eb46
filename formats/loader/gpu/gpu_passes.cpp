#include "formats/loader/gpu/gpu_passes.hpp"

#include <algorithm>
#include <array>

#include "formats/loader/gpu/gpu_kernels.hpp"
#include "lib/core/checked.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kPlanUnit = 256;     // gather plans lie at its multiples
constexpr int64_t kMostBlocks = 2048;  // of a launch; each takes several words then
constexpr int64_t kWordsOfThread = 4;
constexpr int64_t kQuickGranules = 16;  // that a thread makes, where places are found once for all

}  // namespace

int64_t plan_bytes(const GatherPlan& plan) {
  return round_up(std::ssize(plan) * int64_t{sizeof(uint32_t)}, kPlanUnit);
}

void copy_plan(const GpuDevice& gpu, const GatherPlan& plan, CudaDriver::Address to) {
  gpu.cuda().check(gpu.cuda().copy_now(to, plan.data(), plan.size() * sizeof(uint32_t)),
                   "cuMemcpyHtoD");
}

void launch_gather(const GpuDevice& gpu, const GatherPlan& plan, CudaDriver::Address words,
                   CudaDriver::Address in, CudaDriver::Address out, int64_t granules) {
  auto in_step = static_cast<uint64_t>(raw_bytes(plan));
  auto out_step = static_cast<uint64_t>(made_bytes(plan));
  auto out_bytes = static_cast<uint32_t>(out_step);
  auto count = static_cast<uint32_t>(granules);
  const int64_t quick = quick_bytes(plan);
  auto together = static_cast<uint32_t>(quick > 0 ? kQuickGranules : 1);
  std::array<void*, 8> arguments = {&words,    &in,        &in_step, &out,
                                    &out_step, &out_bytes, &count,   &together};
  const int64_t rows = ceil_div(granules, int64_t{together});
  const int64_t of_thread = quick > 0 ? quick : kWordsOfThread * int64_t{sizeof(uint32_t)};
  int64_t blocks = ceil_div(made_bytes(plan), of_thread * kGroupThreads);
  if (quick == 0) blocks = std::min(blocks, std::max<int64_t>(1, kMostBlocks / rows));
  gpu.cuda().check(
      gpu.cuda().launch(gpu.gather(), static_cast<unsigned>(blocks), static_cast<unsigned>(rows), 1,
                        kGroupThreads, 1, 1, 0, gpu.kernels(), arguments.data(), nullptr),
      "cuLaunchKernel");
}

int64_t GpuPasses::memory_bytes(const GpuPlan& plan) {
  if (plan.groups().empty()) return 0;
  int64_t bytes = GpuPlan::kStagingBytes;
  for (const GatherPlan* words : plan.passes()) bytes += plan_bytes(*words);
  return bytes;
}

GpuPasses::GpuPasses(const GpuDevice& gpu, const GpuPlan& plan, CudaDriver::Address memory,
                     const GpuEvents& passed)
    : gpu_(gpu), plan_(plan), staging_(memory), passed_(passed) {
  const InContext current(gpu.cuda(), gpu.context());
  CudaDriver::Address at = memory + static_cast<uint64_t>(GpuPlan::kStagingBytes);
  for (const GatherPlan* words : plan.passes()) {
    copy_plan(gpu, *words, at);
    plans_[words] = at;
    at += static_cast<uint64_t>(plan_bytes(*words));
  }
  for (const GpuPlan::Group& group : plan.groups()) missing_.push_back(group.pieces);
}

bool GpuPasses::has_room(const GpuPlan::Piece& piece) const {
  if (piece.group == GpuPlan::kNoGroup || piece.group == made_) return true;
  const std::vector<GpuPlan::Group>& groups = plan_.groups();
  const GpuPlan::Group& group = groups[piece.group];
  return piece.group - made_ < kUnderWay &&
         group.position + group.raw_bytes() - groups[made_].position <= GpuPlan::kStagingBytes;
}

CudaDriver::Address GpuPasses::place_of(const GpuPlan::Piece& piece) const {
  const GpuPlan::Group& group = plan_.groups()[piece.group];
  return staging_ + static_cast<uint64_t>(group.position % GpuPlan::kStagingBytes +
                                          piece.piece.begin - group.raw_begin);
}

void GpuPasses::make_behind(std::span<const FullSlot> pieces,
                            std::span<const CudaDriver::Address> targets) {
  for (const FullSlot& full : pieces) {
    const GpuPlan::Piece& piece = plan_.pieces()[full.piece];
    if (piece.group == GpuPlan::kNoGroup || --missing_[piece.group] > 0) continue;
    launch(piece.group, targets[piece.request]);
  }
}

void GpuPasses::launch(size_t number, CudaDriver::Address target) {
  const GpuPlan::Group& group = plan_.groups()[number];
  const auto in = static_cast<uint64_t>(group.position % GpuPlan::kStagingBytes);
  launch_gather(gpu_, *group.plan, plans_.at(group.plan), staging_ + in,
                target + static_cast<uint64_t>(group.to), group.granules);
  gpu_.cuda().check(gpu_.cuda().record(passed_.of(number), gpu_.kernels()), "cuEventRecord");
}

void GpuPasses::free_made() {
  while (made_ < missing_.size() && missing_[made_] == 0 &&
         is_over(gpu_.cuda(), passed_.of(made_))) {
    ++made_;
  }
}

}  // namespace mxfp4
