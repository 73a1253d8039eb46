#include "formats/loader/gpu/gpu_plan.hpp"

#include <algorithm>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// The copy engine has nothing to do until the first piece is there, so each thread's first pieces
// are small. What is decoded or made whole would gain nothing.
constexpr std::array kFirstBytes = {int64_t{256} << 10, int64_t{512} << 10};

// Slots are multiples of it, so that each begins where a page of the ring does: the largest that
// kernels for 64-bit Arm use beside NVIDIA's GPUs.
constexpr int64_t kSlotUnit = int64_t{64} << 10;

// Small granules are made together, so that launches cost little; a larger one by itself.
constexpr int64_t kGroupBytes = int64_t{4} << 20;
constexpr int64_t kGroupUnit = 256;  // groups lie at its multiples

}  // namespace

GpuPlan::GpuPlan(const LoadSource& source, std::span<const LoadRequest> requests, bool verify,
                 size_t threads, int64_t most_bytes, bool on_gpu)
    : source_(source),
      requests_(requests.begin(), requests.end()),
      verify_(verify),
      on_gpu_(on_gpu) {
  for (size_t i = 0; i < requests.size(); ++i) {
    if (pass_of(i) != nullptr) continue;
    const int64_t best = source.best_piece(requests[i].layer, requests[i].tensor);
    slot_bytes_ = std::max(slot_bytes_, round_up(std::min(best, most_bytes), kSlotUnit));
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    if (verify) source.check_verifiable(requests[i]);
    places_.push_back(source.place(requests[i].layer, requests[i].tensor));
    in_context(places_.back(), [&] {
      const GatherPlan* plan = pass_of(i);
      if (plan != nullptr) {
        cut_raw(i, *plan, threads);
      } else {
        cut(i, threads, most_bytes);
      }
    });
  }
}

const GatherPlan* GpuPlan::pass_of(size_t index) const {
  if (!on_gpu_ || summed(index)) return nullptr;
  const LoadRequest& request = requests_[index];
  const GatherPlan* plan = source_.gpu_pass(request.layer, request.tensor);
  if (plan == nullptr || raw_bytes(*plan) > kStagingBytes) return nullptr;
  const int64_t made = made_bytes(*plan);
  const bool whole =
      request.offset % made == 0 && static_cast<int64_t>(request.out.size()) % made == 0;
  return whole ? plan : nullptr;
}

void GpuPlan::cut_raw(size_t index, const GatherPlan& plan, size_t threads) {
  if (std::ranges::find(passes_, &plan) == passes_.end()) passes_.push_back(&plan);
  const LoadRequest& request = requests_[index];
  const int64_t raw = raw_bytes(plan);
  const int64_t made = made_bytes(plan);
  const int64_t first = request.offset / made;
  const int64_t count = static_cast<int64_t>(request.out.size()) / made;
  const int64_t at_once = std::max<int64_t>(1, kGroupBytes / raw);
  for (int64_t granule = 0; granule < count; granule += at_once) {
    Group group = {.plan = &plan,
                   .granules = std::min(at_once, count - granule),
                   .raw_begin = (first + granule) * raw,
                   .to = granule * made,
                   .position = round_up(position_, kGroupUnit)};
    const int64_t rest = kStagingBytes - group.position % kStagingBytes;
    if (group.raw_bytes() > rest) group.position += rest;
    position_ = group.position + group.raw_bytes();
    int64_t begin = group.raw_begin;
    for (const int64_t end = begin + group.raw_bytes(); begin < end; ++group.pieces) {
      const size_t round = pieces_.size() / threads;
      const int64_t most = round < kFirstBytes.size() ? kFirstBytes.at(round) : kPlainPiece;
      const int64_t bytes = std::min(most, end - begin);
      pieces_.push_back({{.tensor = request.tensor, .begin = begin, .bytes = bytes, .raw = true},
                         index,
                         groups_.size()});
      begin += bytes;
    }
    groups_.push_back(group);
  }
}

void GpuPlan::cut(size_t index, size_t threads, int64_t most_bytes) {
  const LoadRequest& request = requests_[index];
  const auto bytes = static_cast<int64_t>(request.out.size());
  int64_t begin = 0;
  const auto cut = [&](int64_t end, int64_t limit) {
    for (const LoadPiece& piece : source_.pieces(request.layer, request.tensor,
                                                 request.offset + begin, end - begin, limit)) {
      pieces_.push_back({piece, index});
    }
    begin = end;
  };
  if (pieces_.empty() && source_.cuts_anywhere(request.layer, request.tensor)) {
    for (const int64_t small : kFirstBytes) {
      cut(std::min(bytes, begin + static_cast<int64_t>(threads) * small), small);
    }
  }
  const int64_t best = source_.best_piece(request.layer, request.tensor);
  cut(bytes, std::min(best, most_bytes));
}

bool GpuPlan::sums_any() const {
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (summed(i)) return true;
  }
  return false;
}

}  // namespace mxfp4
