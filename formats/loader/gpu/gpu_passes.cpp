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

int64_t words_bytes(const GatherPlan& plan) {
  return round_up(std::ssize(plan) * int64_t{sizeof(uint32_t)}, kPlanUnit);
}

}  // namespace

int64_t GpuPasses::memory_bytes(const GpuPlan& plan) {
  if (plan.groups().empty()) return 0;
  int64_t bytes = GpuPlan::kStagingBytes;
  for (const GatherPlan* words : plan.passes()) bytes += words_bytes(*words);
  return bytes;
}

GpuPasses::GpuPasses(const GpuDevice& gpu, const GpuPlan& plan, CudaDriver::Address memory,
                     const GpuEvents& passed)
    : gpu_(gpu), plan_(plan), staging_(memory), passed_(passed) {
  const InContext current(gpu.cuda(), gpu.context());
  CudaDriver::Address at = memory + static_cast<uint64_t>(GpuPlan::kStagingBytes);
  for (const GatherPlan* words : plan.passes()) {
    gpu.cuda().check(gpu.cuda().copy_now(at, words->data(), words->size() * sizeof(uint32_t)),
                     "cuMemcpyHtoD");
    plans_[words] = at;
    at += static_cast<uint64_t>(words_bytes(*words));
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
  const auto made = static_cast<uint64_t>(made_bytes(*group.plan));
  CudaDriver::Address words = plans_.at(group.plan);
  CudaDriver::Address in =
      staging_ + static_cast<uint64_t>(group.position % GpuPlan::kStagingBytes);
  auto in_step = static_cast<uint64_t>(raw_bytes(*group.plan));
  CudaDriver::Address out = target + static_cast<uint64_t>(group.to);
  uint64_t out_step = made;
  auto out_bytes = static_cast<uint32_t>(made);
  std::array<void*, 6> arguments = {&words, &in, &in_step, &out, &out_step, &out_bytes};
  const int64_t wanted = ceil_div(static_cast<int64_t>(made),
                                  int64_t{sizeof(uint32_t)} * kWordsOfThread * kGroupThreads);
  const auto blocks =
      static_cast<unsigned>(std::min(wanted, std::max<int64_t>(1, kMostBlocks / group.granules)));
  const CudaDriver& cuda = gpu_.cuda();
  cuda.check(cuda.launch(gpu_.gather(), blocks, static_cast<unsigned>(group.granules), 1,
                         kGroupThreads, 1, 1, 0, gpu_.kernels(), arguments.data(), nullptr),
             "cuLaunchKernel");
  cuda.check(cuda.record(passed_.of(number), gpu_.kernels()), "cuEventRecord");
}

void GpuPasses::free_made() {
  while (made_ < missing_.size() && missing_[made_] == 0 &&
         is_over(gpu_.cuda(), passed_.of(made_))) {
    ++made_;
  }
}

}  // namespace mxfp4
