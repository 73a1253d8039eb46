#include "formats/loader/gpu/gpu_plan.hpp"

#include <algorithm>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// The copy engine has nothing to do until the first piece is read, so each thread's first pieces of a
// plain file are small. A frame is read whole, so a compressed file would gain nothing.
constexpr std::array kFirstBytes = {int64_t{256} << 10, int64_t{512} << 10};

}  // namespace

GpuPlan::GpuPlan(const BlobLoader& blob, std::span<const LoadRequest> requests, bool verify,
                 size_t threads, int64_t plain_slot, int64_t frame_slot)
    : blob_(blob),
      requests_(requests.begin(), requests.end()),
      verify_(verify),
      plain_(std::ranges::none_of(
          requests, [&](const LoadRequest& request) { return blob.is_compressed(request.layer); })),
      slot_bytes_(plain_ ? plain_slot : frame_slot) {
  for (size_t i = 0; i < requests.size(); ++i) {
    if (verify) blob.check_verifiable(requests[i]);
    places_.push_back(blob.place(requests[i].layer, requests[i].tensor));
    in_context(places_.back(), [&] { cut(i, threads); });
  }
}

void GpuPlan::cut(size_t index, size_t threads) {
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
  if (pieces_.empty() && plain_) {
    for (const int64_t small : kFirstBytes) {
      cut(std::min(bytes, begin + static_cast<int64_t>(threads) * small), small);
    }
  }
  cut(bytes, slot_bytes_);
}

bool GpuPlan::is_of(const BlobLoader& blob, std::span<const LoadRequest> requests,
                    bool verify) const {
  return &blob == &blob_ && verify == verify_ &&
         std::ranges::equal(requests, requests_, [](const LoadRequest& a, const LoadRequest& b) {
           return a.layer == b.layer && a.tensor == b.tensor && a.offset == b.offset &&
                  a.out.size() == b.out.size();
         });
}

}  // namespace mxfp4
