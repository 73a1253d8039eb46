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

}  // namespace

GpuPlan::GpuPlan(const LoadSource& source, std::span<const LoadRequest> requests, bool verify,
                 size_t threads, int64_t most_bytes)
    : source_(source), requests_(requests.begin(), requests.end()), verify_(verify) {
  for (size_t i = 0; i < requests.size(); ++i) {
    const int64_t best = source.best_piece(requests[i].layer, requests[i].tensor, cut_of(i));
    slot_bytes_ = std::max(slot_bytes_, round_up(std::min(best, most_bytes), kSlotUnit));
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    if (verify) source.check_verifiable(requests[i]);
    places_.push_back(source.place(requests[i].layer, requests[i].tensor));
    in_context(places_.back(), [&] { cut(i, threads, most_bytes); });
  }
}

void GpuPlan::cut(size_t index, size_t threads, int64_t most_bytes) {
  const LoadRequest& request = requests_[index];
  const auto bytes = static_cast<int64_t>(request.out.size());
  int64_t begin = 0;
  const auto cut = [&](int64_t end, int64_t limit) {
    for (const LoadPiece& piece :
         source_.pieces(request.layer, request.tensor, request.offset + begin, end - begin, limit,
                        cut_of(index))) {
      pieces_.push_back({piece, index});
    }
    begin = end;
  };
  if (pieces_.empty() && source_.cuts_anywhere(request.layer, request.tensor)) {
    for (const int64_t small : kFirstBytes) {
      cut(std::min(bytes, begin + static_cast<int64_t>(threads) * small), small);
    }
  }
  const int64_t best = source_.best_piece(request.layer, request.tensor, cut_of(index));
  cut(bytes, std::min(best, most_bytes));
}

bool GpuPlan::sums_any() const {
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (summed(i)) return true;
  }
  return false;
}

bool GpuPlan::is_of(const LoadSource& source, std::span<const LoadRequest> requests,
                    bool verify) const {
  return &source == &source_ && verify == verify_ &&
         std::ranges::equal(requests, requests_, [](const LoadRequest& a, const LoadRequest& b) {
           return a.layer == b.layer && a.tensor == b.tensor && a.offset == b.offset &&
                  a.out.size() == b.out.size();
         });
}

}  // namespace mxfp4
