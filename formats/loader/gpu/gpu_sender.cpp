#include "formats/loader/gpu/gpu_sender.hpp"

#include <algorithm>
#include <bit>

#include "formats/loader/gpu/xxh3_ptx.hpp"

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
  while (copies_ - copies_over_ < kUnderWay) {
    std::vector<FullSlot>& pieces = under_way_[copies_ % kUnderWay];
    take_full(pieces);
    if (pieces.empty()) return;
    handed_ += pieces.size();
    copy(pieces, targets);
    const CudaDriver::Event copied = copied_.of(copies_);
    gpu_.cuda().check(gpu_.cuda().record(copied, gpu_.copies()), "cuEventRecord");
    sums_.sum_behind(copied, pieces, targets);
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
  const auto end = full_.begin() + static_cast<ptrdiff_t>(std::min(full_.size(), most_at_once()));
  pieces.assign(full_.begin(), end);
  full_.erase(full_.begin(), end);
}

// The last sums are appended after the last copy, so the last copies are small.
size_t GpuSender::most_at_once() const {
  const auto by_bytes = static_cast<size_t>(kMostAtOnce / plan_.slot_bytes());
  const size_t most = std::clamp(by_bytes, size_t{1}, kSumPieces);
  return std::clamp((plan_.pieces().size() - handed_) / 4, size_t{1}, most);
}

void GpuSender::copy(std::span<const FullSlot> pieces,
                     std::span<const CudaDriver::Address> targets) {
  std::array<CudaDriver::Address, kSumPieces> to{};
  std::array<CudaDriver::Address, kSumPieces> from{};
  std::array<size_t, kSumPieces> bytes{};
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto& [piece, request] = plan_.pieces()[pieces[i].piece];
    to[i] =
        targets[request] + static_cast<uint64_t>(piece.begin - plan_.requests()[request].offset);
    from[i] = std::bit_cast<CudaDriver::Address>(slots_.memory_of(pieces[i].slot));
    bytes[i] = static_cast<size_t>(piece.bytes);
  }
  const CudaDriver& cuda = gpu_.cuda();
  if (cuda.copy_batch != nullptr) {
    CudaDriver::CopyKind kind;
    size_t first = 0;
    size_t failed = 0;
    const auto result = cuda.copy_batch(to.data(), from.data(), bytes.data(), pieces.size(), &kind,
                                        &first, 1, &failed, gpu_.copies());
    if (result != CudaDriver::kNotSupported) {
      cuda.check(result, "cuMemcpyBatchAsync");
      return;
    }
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    cuda.check(
        cuda.copy_to_gpu(to[i], std::bit_cast<const void*>(from[i]), bytes[i], gpu_.copies()),
        "cuMemcpyHtoDAsync");
  }
}

}  // namespace mxfp4
