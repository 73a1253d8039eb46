#include "formats/remote/read_ahead.hpp"

#include <algorithm>
#include <cstring>

namespace mxfp4 {

void ReadAhead::expect(const std::vector<FarPiece>& pieces) {
  const std::scoped_lock lock(mutex_);
  blocks_.clear();
  asked_ = 0;
  asked_bytes_ = 0;
  for (const FarPiece& piece : pieces) {
    int64_t at = piece.begin;
    const int64_t end = piece.begin + piece.size;
    while (at < end) {
      const bool goes_on = !blocks_.empty() && blocks_.back().file == piece.file &&
                           blocks_.back().end == at &&
                           blocks_.back().end - blocks_.back().begin < kBlockBytes;
      if (!goes_on) blocks_.push_back({piece.file, at, at});
      Block& block = blocks_.back();
      block.end = std::min(end, block.begin + kBlockBytes);
      at = block.end;
    }
  }
  ask_next();
}

// Asks for as many blocks as the memory holds.
void ReadAhead::ask_next() {
  for (; asked_ < blocks_.size(); ++asked_) {
    Block& block = blocks_[asked_];
    const int64_t size = block.end - block.begin;
    if (asked_bytes_ > 0 && asked_bytes_ + size > kMostBytes) return;
    block.ticket = fetcher_.ask(block.file, block.begin, size);
    asked_bytes_ += size;
  }
}

// The block that holds a byte; null if none was expected to. Blocks before it are passed over.
FarTicket ReadAhead::find(const std::shared_ptr<FarFile>& file, int64_t at, Block& found) {
  const std::scoped_lock lock(mutex_);
  const auto here = std::ranges::find_if(blocks_, [&](const Block& block) {
    return block.file == file && block.begin <= at && at < block.end;
  });
  if (here == blocks_.end()) return nullptr;
  for (auto passed = here - blocks_.begin(); passed > 0; --passed) {
    if (asked_ > 0) {
      asked_bytes_ -= blocks_.front().end - blocks_.front().begin;
      --asked_;
    }
    blocks_.pop_front();
  }
  ask_next();
  found = blocks_.front();
  return found.ticket;
}

// Drops the first block once it was read to its end.
void ReadAhead::let_go(const Block& block, int64_t read_to) {
  const std::scoped_lock lock(mutex_);
  if (read_to < block.end || blocks_.empty() || blocks_.front().ticket != block.ticket) return;
  blocks_.pop_front();
  asked_bytes_ -= block.end - block.begin;
  --asked_;
  ask_next();
}

void ReadAhead::read(const std::shared_ptr<FarFile>& file, int64_t begin, MutableBytes out) {
  while (!out.empty()) {
    Block block;
    const FarTicket ticket = find(file, begin, block);
    if (!ticket) return read_now(file, begin, out);
    const UninitializedBytes& bytes = fetcher_.wait(ticket);
    const auto size = std::min(static_cast<int64_t>(out.size()), block.end - begin);
    std::memcpy(out.data(), bytes.data() + (begin - block.begin), static_cast<size_t>(size));
    begin += size;
    out = out.subspan(static_cast<size_t>(size));
    let_go(block, begin);
  }
}

// Fetches what nobody said would be read.
void ReadAhead::read_now(const std::shared_ptr<FarFile>& file, int64_t begin, MutableBytes out) {
  std::deque<FarTicket> tickets;
  size_t asked = 0;
  for (size_t read = 0; read < out.size();) {
    while (asked < out.size() && tickets.size() < Fetcher::kConnections) {
      const size_t size = std::min(out.size() - asked, static_cast<size_t>(kBlockBytes));
      tickets.push_back(
          fetcher_.ask(file, begin + static_cast<int64_t>(asked), static_cast<int64_t>(size)));
      asked += size;
    }
    const UninitializedBytes& bytes = fetcher_.wait(tickets.front());
    std::memcpy(out.data() + read, bytes.data(), bytes.size());
    read += bytes.size();
    tickets.pop_front();
  }
}

}  // namespace mxfp4
