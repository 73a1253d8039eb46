#include "formats/blob/gathered_write.hpp"

#include <algorithm>
#include <cstring>

namespace mxfp4 {
namespace {

// From this size on, writing a part by itself costs less than copying it.
constexpr size_t kLargePart = size_t{16} << 10;

}  // namespace

void GatheredWrite::add(ConstBytes bytes) {
  while (!bytes.empty()) {
    const ConstBytes part = bytes.first(std::min(bytes.size(), kBatchBytes - batch_bytes_));
    bytes = bytes.subspan(part.size());
    if (part.size() < kLargePart) {
      gather(part);
    } else {
      batch_.push_back(part);
    }
    batch_bytes_ += part.size();
    if (batch_bytes_ == kBatchBytes) finish();
  }
}

void GatheredWrite::gather(ConstBytes part) {
  if (memory_.empty()) memory_.resize(kBatchBytes);
  std::byte* to = memory_.data() + gathered_;
  std::memcpy(to, part.data(), part.size());
  gathered_ += part.size();
  const bool joins = !batch_.empty() && batch_.back().data() + batch_.back().size() == to;
  if (joins) {
    batch_.back() = {batch_.back().data(), batch_.back().size() + part.size()};
  } else {
    batch_.emplace_back(to, part.size());
  }
}

void GatheredWrite::finish() {
  for (ConstBytes part : batch_) sum_.update(part);
  file_.write_at(offset_, batch_);
  offset_ += static_cast<int64_t>(batch_bytes_);
  batch_.clear();
  batch_bytes_ = 0;
  gathered_ = 0;
}

}  // namespace mxfp4
