#include "formats/loader/gpu/gpu_reading.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <thread>

#include "formats/loader/gpu/xxh3_ptx.hpp"
#include "lib/exec/wait.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kMostAtOnce = int64_t{16} << 20;  // of one copy: slots are held until it is over

// The copy engine has nothing to do until the first piece is read, so each thread's first pieces of a
// plain file are small. A frame is read whole, so a compressed file would gain nothing.
constexpr std::array kFirstBytes = {int64_t{256} << 10, int64_t{512} << 10};

// On the GPU.
CudaDriver::Address address_of(const LoadRequest& request) {
  return std::bit_cast<CudaDriver::Address>(request.out.data());
}

// Whole blocks of the checksum that a piece completes.
size_t blocks_of(const LoadPiece& piece) {
  const int64_t bytes = piece.begin + piece.bytes - ChecksumPart::first_block(piece.begin);
  return static_cast<size_t>(std::max<int64_t>(bytes, 0) / ChecksumPart::kPeriod);
}

}  // namespace

GpuLoader::Reading::Reading(GpuLoader& loader, const BlobLoader& blob,
                            std::span<const LoadRequest> requests, const LoadOptions& options)
    : loader_(loader),
      cuda_(loader.cuda_),
      blob_(blob),
      requests_(requests.begin(), requests.end()),
      verify_(options.verify),
      slot_bytes_(std::ranges::any_of(
                      requests,
                      [&](const LoadRequest& request) { return blob.is_compressed(request.layer); })
                      ? kFrameSlot
                      : kPlainSlot),
      sum_places_(static_cast<size_t>(kRingsAhead * loader.ring_bytes() / slot_bytes_)),
      sums_(requests.size()) {
  for (size_t i = 0; i < requests.size(); ++i) {
    if (options.verify) blob.check_verifiable(requests[i]);
    places_.push_back(blob.place(requests[i].layer, requests[i].tensor));
    in_context(places_.back(), [&] { plan(i); });
  }
  sent_ = std::make_unique<std::atomic<bool>[]>(pieces_.size());
  event_of_.resize(sum_places_);
  used_ = std::make_unique<std::atomic<bool>[]>(loader.ring_threads_ * slots_of_thread());
}

void GpuLoader::Reading::plan(size_t index) {
  const LoadRequest& request = requests_[index];
  const auto bytes = static_cast<int64_t>(request.out.size());
  int64_t begin = 0;
  const auto cut = [&](int64_t end, int64_t limit) {
    for (const LoadPiece& piece :
         blob_.pieces(request.layer, request.tensor, request.offset + begin, end - begin, limit)) {
      pieces_.push_back({piece, index});
    }
    begin = end;
  };
  if (pieces_.empty() && slot_bytes_ == kPlainSlot) {
    const auto threads = static_cast<int64_t>(loader_.ring_threads_);
    for (const int64_t small : kFirstBytes) cut(std::min(bytes, begin + threads * small), small);
  }
  cut(bytes, slot_bytes_);
}

bool GpuLoader::Reading::is_of(const BlobLoader& blob, std::span<const LoadRequest> requests,
                               const LoadOptions& options) const {
  return &blob == &blob_ && options.verify == verify_ &&
         std::ranges::equal(requests, requests_,
                            [](const LoadRequest& a, const LoadRequest& b) {
                              return a.layer == b.layer && a.tensor == b.tensor &&
                                     a.offset == b.offset && a.out.size() == b.out.size();
                            }) &&
         (targets_.empty() || std::ranges::equal(requests, targets_, {}, address_of));
}

void GpuLoader::Reading::send_to(std::span<const LoadRequest> requests, const int32_t* cancel) {
  cancel_ = cancel;
  if (has_target_) return;
  std::ranges::transform(requests, std::back_inserter(targets_), address_of);
  wake();
}

void GpuLoader::Reading::stop() {
  failed_ = true;
  wake();
}

void GpuLoader::Reading::wake() {
  {
    const std::scoped_lock lock(target_mutex_);
    has_target_ = true;
  }
  target_known_.notify_all();
}

void GpuLoader::Reading::await_target() {
  if (has_target_) return;
  std::unique_lock lock(target_mutex_);
  while (!has_target_) wait(target_known_, lock);
}

template <class Action>
void GpuLoader::Reading::guard(const Action& action) noexcept {
  try {
    action();
  } catch (...) {
    const std::scoped_lock lock(failure_mutex_);
    if (!failure_) failure_ = std::current_exception();
    failed_ = true;
  }
}

void GpuLoader::Reading::work() noexcept {
  const size_t thread = next_thread_++;
  if (thread < loader_.ring_threads_) guard([&] { work_in(thread); });
}

// Takes pieces through the slots of a thread.
void GpuLoader::Reading::work_in(size_t thread) {
  const InContext current(cuda_, loader_.context_);
  const size_t slots = slots_of_thread();
  LoadBuffers buffers;
  size_t taken = 0;
  for (size_t i = next_++; i < pieces_.size() && !failed_; i = next_++, ++taken) {
    const size_t slot = thread * slots + taken % slots;
    if (i >= sum_places_) await_appended(i - sum_places_ + 1);  // whose place this piece takes
    if (used_[slot]) await_target();
    for (; used_[slot] && !failed_; std::this_thread::yield()) go_on();
    if (failed_) return;
    take(i, slot, buffers);
    go_on();
  }
}

void GpuLoader::Reading::await_sums() noexcept {
  guard([&] {
    const InContext current(cuda_, loader_.context_);
    await_appended(pieces_.size());
  });
}

void GpuLoader::Reading::await_gpu() noexcept {
  // Whatever fails here, there is nobody to tell.
  if (cuda_.push_context(loader_.context_) != 0) return;
  cuda_.synchronize(loader_.copies_);
  cuda_.synchronize(loader_.sums_);
  CudaDriver::Context popped = nullptr;
  cuda_.pop_context(&popped);
}

void GpuLoader::Reading::finish() {
  const InContext current(cuda_, loader_.context_);
  const auto copies = cuda_.synchronize(loader_.copies_);
  const auto sums = cuda_.synchronize(loader_.sums_);
  if (failure_) std::rethrow_exception(failure_);
  cuda_.check(copies, "cuStreamSynchronize");
  cuda_.check(sums, "cuStreamSynchronize");
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (summed(i)) blob_.compare(requests_[i].layer, requests_[i].tensor, sums_[i].hex());
  }
}

// Reads a piece into a slot.
void GpuLoader::Reading::take(size_t index, size_t slot, LoadBuffers& buffers) {
  throw_if_cancelled(cancel_);
  used_[slot] = true;
  const auto& [piece, number] = pieces_[index];
  const LoadRequest& request = requests_[number];
  const MutableBytes bytes(memory_of(slot), static_cast<size_t>(piece.bytes));
  const bool checked = verify_ && !summed(number);
  in_context(places_[number], [&, &piece = piece] {
    blob_.read_piece(request.layer, piece, bytes, buffers,
                     checked ? FrameCheck::kChecksums : FrameCheck::kSizes, nullptr);
  });
  if (summed(number)) {
    const auto* sums = reinterpret_cast<const uint64_t*>(loader_.ring_ + sums_offset(index));
    part_of(index).assemble(piece.begin, bytes, {sums, blocks_of(piece) * kernels::kXxh3Lanes});
  }
  const std::scoped_lock lock(full_mutex_);
  full_.push_back({index, slot});
}

void GpuLoader::Reading::go_on() {
  if (!has_target_ || failed_) return;  // in this order: stop() sets both
  send();
  append_arrived();
}

// Hands what was read to the GPU, unless it has enough to do.
void GpuLoader::Reading::send() {
  const std::unique_lock lock(send_mutex_, std::try_to_lock);
  if (!lock) return;
  for (; copies_over_ < copies_ && is_over(copied(copies_over_)); ++copies_over_) {
    for (const Full& full : under_way_[copies_over_ % kUnderWay]) used_[full.slot] = false;
  }
  while (copies_ - copies_over_ < kUnderWay) {
    std::vector<Full>& pieces = under_way_[copies_ % kUnderWay];
    {
      const std::scoped_lock full_lock(full_mutex_);
      const auto end =
          full_.begin() + static_cast<ptrdiff_t>(std::min(full_.size(), most_at_once()));
      pieces.assign(full_.begin(), end);
      full_.erase(full_.begin(), end);
    }
    if (pieces.empty()) return;
    handed_ += pieces.size();
    copy(pieces);
    cuda_.check(cuda_.record(copied(copies_), loader_.copies_), "cuEventRecord");
    sum(pieces, copied(copies_));
    ++copies_;
  }
}

// The last sums are appended after the last copy, so the last copies are small.
size_t GpuLoader::Reading::most_at_once() const {
  const auto most = std::min(kSumPieces, static_cast<size_t>(kMostAtOnce / slot_bytes_));
  return std::clamp((pieces_.size() - handed_) / 4, size_t{1}, most);
}

int64_t GpuLoader::Reading::sums_offset(size_t piece) const {
  return loader_.ring_bytes() + static_cast<int64_t>(piece % sum_places_) * sum_bytes(slot_bytes_);
}

void GpuLoader::Reading::copy(std::span<const Full> pieces) {
  std::array<CudaDriver::Address, kSumPieces> to{};
  std::array<CudaDriver::Address, kSumPieces> from{};
  std::array<size_t, kSumPieces> bytes{};
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto& [piece, number] = pieces_[pieces[i].piece];
    to[i] = targets_[number] + static_cast<uint64_t>(piece.begin - requests_[number].offset);
    from[i] = std::bit_cast<CudaDriver::Address>(memory_of(pieces[i].slot));
    bytes[i] = static_cast<size_t>(piece.bytes);
  }
  if (cuda_.copy_batch != nullptr) {
    CudaDriver::CopyKind kind;
    size_t first = 0;
    size_t failed = 0;
    const auto result = cuda_.copy_batch(to.data(), from.data(), bytes.data(), pieces.size(), &kind,
                                         &first, 1, &failed, loader_.copies_);
    if (result != CudaDriver::kNotSupported) {
      cuda_.check(result, "cuMemcpyBatchAsync");
      return;
    }
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    cuda_.check(
        cuda_.copy_to_gpu(to[i], std::bit_cast<const void*>(from[i]), bytes[i], loader_.copies_),
        "cuMemcpyHtoDAsync");
  }
}

// Lets the GPU sum pieces behind their copy.
void GpuLoader::Reading::sum(std::span<const Full> pieces, CudaDriver::Event copied) {
  std::array<SumPiece, kSumPieces> of{};
  unsigned count = 0;
  uint64_t most = 0;
  for (const Full& full : pieces) {
    const auto& [piece, number] = pieces_[full.piece];
    const uint64_t blocks = summed(number) ? blocks_of(piece) : 0;
    if (blocks == 0) continue;
    most = std::max(most, blocks);
    of.at(count++) = {
        .in = targets_[number] + static_cast<uint64_t>(ChecksumPart::first_block(piece.begin)),
        .blocks = blocks,
        .sums = loader_.ring_address_ + static_cast<uint64_t>(sums_offset(full.piece))};
  }
  cuda_.check(cuda_.wait_event(loader_.sums_, copied, 0), "cuStreamWaitEvent");
  if (count > 0) {
    void* arguments = of.data();
    const auto groups = static_cast<unsigned>((most + kSumBlocksInGroup - 1) / kSumBlocksInGroup);
    cuda_.check(cuda_.launch(loader_.sum_blocks_, groups, count, 1, kSumThreads, 1, 1, 0,
                             loader_.sums_, &arguments, nullptr),
                "cuLaunchKernel");
  }
  // The last one's event is free: the piece that had it before is appended, and so are all before.
  const size_t last = std::ranges::max(pieces, {}, &Full::piece).piece;
  cuda_.check(cuda_.record(loader_.summed_[last % sum_places_], loader_.sums_), "cuEventRecord");
  for (const Full& full : pieces) {
    event_of_[full.piece % sum_places_] = loader_.summed_[last % sum_places_];
    sent_[full.piece] = true;
  }
}

bool GpuLoader::Reading::is_over(CudaDriver::Event event) const {
  const CudaDriver::Result result = cuda_.query(event);
  if (result == CudaDriver::kNotReady) return false;
  cuda_.check(result, "cuEventQuery");
  return true;
}

void GpuLoader::Reading::await_appended(size_t count) {
  for (; appended_ < count && !failed_; std::this_thread::yield()) go_on();
}

// Appends the sums that have arrived to their tensors' checksums, in order, unless another thread
// does.
void GpuLoader::Reading::append_arrived() {
  const std::unique_lock lock(append_mutex_, std::try_to_lock);
  if (!lock) return;
  for (size_t next = appended_; next < pieces_.size() && sent_[next]; appended_ = ++next) {
    const size_t request = pieces_[next].request;
    if (!summed(request)) continue;
    if (!is_over(event_of_[next % sum_places_])) return;
    sums_[request].append(part_of(next));
  }
}

}  // namespace mxfp4
