#include "formats/loader/gpu/gpu_sums.hpp"

#include <algorithm>
#include <array>

#include "formats/loader/gpu/gpu_kernels.hpp"

namespace mxfp4 {
namespace {

// Whole blocks of the checksum that a piece completes.
size_t blocks_of(const LoadPiece& piece) {
  const int64_t bytes = piece.begin + piece.bytes - ChecksumPart::first_block(piece.begin);
  return static_cast<size_t>(std::max<int64_t>(bytes, 0) / ChecksumPart::kPeriod);
}

}  // namespace

GpuSums::GpuSums(const GpuDevice& gpu, const GpuPlan& plan, const GpuSumRoom& room, size_t places)
    : gpu_(gpu),
      plan_(plan),
      room_(room),
      places_(places),
      sums_(plan.requests().size()),
      event_of_(places),
      sent_(std::make_unique<std::atomic<bool>[]>(plan.pieces().size())) {}

int64_t GpuSums::offset_of(size_t piece) const {
  return static_cast<int64_t>(piece % places_) * sum_bytes(plan_.slot_bytes());
}

void GpuSums::start(size_t index, ConstBytes bytes) {
  const auto& [piece, request, group] = plan_.pieces()[index];
  if (!plan_.summed(request)) return;
  const auto* sums = reinterpret_cast<const uint64_t*>(room_.memory + offset_of(index));
  part_of(index).assemble(piece.begin, bytes, {sums, blocks_of(piece) * kernels::kXxh3Lanes});
}

void GpuSums::sum_behind(CudaDriver::Event copied, std::span<const FullSlot> pieces,
                         std::span<const CudaDriver::Address> targets) {
  std::array<SumPiece, kSumPieces> of{};
  unsigned count = 0;
  uint64_t most = 0;
  for (const FullSlot& full : pieces) {
    const auto& [piece, request, group] = plan_.pieces()[full.piece];
    const uint64_t blocks = plan_.summed(request) ? blocks_of(piece) : 0;
    if (blocks == 0) continue;
    most = std::max(most, blocks);
    of.at(count++) = {
        .in = targets[request] + static_cast<uint64_t>(ChecksumPart::first_block(piece.begin)),
        .blocks = blocks,
        .sums = room_.address + static_cast<uint64_t>(offset_of(full.piece))};
  }
  const CudaDriver& cuda = gpu_.cuda();
  cuda.check(cuda.wait_event(gpu_.kernels(), copied, 0), "cuStreamWaitEvent");
  if (count > 0) {
    void* arguments = of.data();
    const auto groups = static_cast<unsigned>((most + kSumBlocksInGroup - 1) / kSumBlocksInGroup);
    cuda.check(cuda.launch(gpu_.sum_blocks(), groups, count, 1, kGroupThreads, 1, 1, 0,
                           gpu_.kernels(), &arguments, nullptr),
               "cuLaunchKernel");
  }
  // The last one's event is free: the piece that had it before is appended, and so are all before.
  const size_t last = std::ranges::max(pieces, {}, &FullSlot::piece).piece;
  const CudaDriver::Event summed = room_.summed->of(last % places_);
  cuda.check(cuda.record(summed, gpu_.kernels()), "cuEventRecord");
  for (const FullSlot& full : pieces) {
    event_of_[full.piece % places_] = summed;
    sent_[full.piece].store(true, std::memory_order_release);
  }
}

void GpuSums::append_arrived() {
  const std::unique_lock lock(append_mutex_, std::try_to_lock);
  if (!lock) return;
  const std::vector<GpuPlan::Piece>& pieces = plan_.pieces();
  // Relaxed: appended_ changes only under the mutex.
  size_t next = appended_.load(std::memory_order_relaxed);
  for (; next < pieces.size() && sent_[next].load(std::memory_order_acquire); ++next) {
    const size_t request = pieces[next].request;
    if (plan_.summed(request)) {
      if (!is_over(gpu_.cuda(), event_of_[next % places_])) return;
      sums_[request].append(part_of(next));
    }
    appended_.store(next + 1, std::memory_order_release);
  }
}

void GpuSums::compare() const {
  const std::vector<LoadRequest>& requests = plan_.requests();
  for (size_t i = 0; i < requests.size(); ++i) {
    if (plan_.summed(i)) {
      plan_.source().compare(requests[i].layer, requests[i].tensor, sums_[i].hex());
    }
  }
}

}  // namespace mxfp4
