#include "formats/loader/gpu/gpu_sender.hpp"

#include <algorithm>
#include <bit>

#include "formats/loader/gpu/gpu_kernels.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kMostAtOnce = int64_t{16} << 20;  // of one copy: slots are held until it is over

}  // namespace

void GpuSender::add(const FullSlot& full) {
  const std::scoped_lock lock(full_mutex_);
  full_.push_back(full);
}

void GpuSender::send(std::span<const CudaDriver::Address> targets) {
  const std::unique_lock lock(send_mutex_, std::try_to_lock);
  if (!lock) return;
  free_copied();
  passes_.free_made();
  while (copies_ - copies_over_ < kUnderWay) {
    std::vector<FullSlot>& pieces = under_way_[copies_ % kUnderWay];
    take_full(pieces);
    if (pieces.empty()) return;
    handed_ += pieces.size();
    copy(pieces, targets);
    const CudaDriver::Event copied = copied_.of(copies_);
    gpu_.cuda().check(gpu_.cuda().record(copied, gpu_.copies()), "cuEventRecord");
    sums_.sum_behind(copied, pieces, targets);
    passes_.make_behind(pieces, targets);
    ++copies_;
  }
}

void GpuSender::free_copied() {
  for (; copies_over_ < copies_ && is_over(gpu_.cuda(), copied_.of(copies_over_)); ++copies_over_) {
    for (const FullSlot& full : under_way_[copies_over_ % kUnderWay]) slots_.free(full.slot);
  }
}

void GpuSender::take_full(std::vector<FullSlot>& pieces) {
  const std::scoped_lock lock(full_mutex_);
  pieces.clear();
  const size_t most = most_at_once();
  std::erase_if(full_, [&](const FullSlot& full) {
    if (pieces.size() == most || !passes_.has_room(plan_.pieces()[full.piece])) return false;
    pieces.push_back(full);
    return true;
  });
}

// The last sums are appended after the last copy, so the last copies are small.
size_t GpuSender::most_at_once() const {
  const auto by_bytes = static_cast<size_t>(kMostAtOnce / plan_.slot_bytes());
  const size_t most = std::clamp(by_bytes, size_t{1}, kSumPieces);
  return std::clamp((plan_.pieces().size() - handed_) / 4, size_t{1}, most);
}

void GpuSender::copy(std::span<const FullSlot> pieces,
                     std::span<const CudaDriver::Address> targets) {
  std::vector<CudaDriver::Address> to;
  std::vector<CudaDriver::Address> from;
  std::vector<size_t> bytes;
  for (const FullSlot& full : pieces) {
    const GpuPlan::Piece& of = plan_.pieces()[full.piece];
    const LoadPiece& piece = of.piece;
    const auto target =
        piece.raw ? passes_.place_of(of)
                  : targets[of.request] +
                        static_cast<uint64_t>(piece.begin - plan_.requests()[of.request].offset);
    to.push_back(target);
    from.push_back(std::bit_cast<CudaDriver::Address>(slots_.memory_of(full.slot)));
    bytes.push_back(static_cast<size_t>(piece.bytes));
  }
  const CudaDriver& cuda = gpu_.cuda();
  if (cuda.copy_batch != nullptr) {
    CudaDriver::CopyKind kind;
    size_t first = 0;
    size_t failed = 0;
    const auto result = cuda.copy_batch(to.data(), from.data(), bytes.data(), to.size(), &kind,
                                        &first, 1, &failed, gpu_.copies());
    if (result != CudaDriver::kNotSupported) {
      cuda.check(result, "cuMemcpyBatchAsync");
      return;
    }
  }
  for (size_t i = 0; i < to.size(); ++i) {
    cuda.check(
        cuda.copy_to_gpu(to[i], std::bit_cast<const void*>(from[i]), bytes[i], gpu_.copies()),
        "cuMemcpyHtoDAsync");
  }
}

}  // namespace mxfp4
