#include "formats/remote/read_ahead.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "formats/remote/far_range.hpp"

namespace mxfp4 {

void ReadAhead::expect_nothing() {
  const std::scoped_lock lock(mutex_);
  blocks_.clear();
  asked_bytes_ = 0;
}

void ReadAhead::expect(const std::shared_ptr<FarFile>& file, int64_t begin, int64_t size) {
  const std::scoped_lock lock(mutex_);
  for (const int64_t end = begin + size; begin < end;) {
    const bool goes_on = !blocks_.empty() && blocks_.back().file == file &&
                         blocks_.back().end == begin && blocks_.back().expected &&
                         !blocks_.back().ticket &&
                         blocks_.back().end - blocks_.back().begin < kBlockBytes;
    if (!goes_on) blocks_.push_back({file, begin, begin, true});
    Block& block = blocks_.back();
    begin = block.end = std::min(end, block.begin + kBlockBytes);
    block.unread = block.end - block.begin;
  }
}

void ReadAhead::ask(Block& block) {
  const int64_t size = block.end - block.begin;
  block.ticket = fetcher_.add({.file = block.file, .begin = block.begin, .size = size});
  asked_bytes_ += size;
}

// Asks for as many blocks as the memory holds.
void ReadAhead::ask_next() {
  for (Block& block : blocks_) {
    if (block.ticket) continue;
    if (asked_bytes_ > 0 && asked_bytes_ + block.end - block.begin > kMostBytes) return;
    ask(block);
  }
}

void ReadAhead::drop(Blocks::iterator block) {
  if (block->ticket) asked_bytes_ -= block->end - block->begin;
  blocks_.erase(block);
}

// The block that holds a byte, asked for.
ReadAhead::Block ReadAhead::find(const std::shared_ptr<FarFile>& file, int64_t at, int64_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto last = ends_.find(file.get());
  const bool in_order = last != ends_.end() && last->second == at && at + bytes <= file->size &&
                        std::ranges::none_of(blocks_, &Block::expected);
  auto here = std::ranges::find_if(blocks_, [&](const Block& block) {
    return block.file == file && block.begin <= at && at < block.end;
  });
  if (here == blocks_.end() && !in_order) {
    const int64_t size = std::min(bytes, kBlockBytes);
    ends_[file.get()] = at + size;
    return {file, at, at + size, false, 0, fetcher_.add({.file = file, .begin = at, .size = size})};
  }
  if (here == blocks_.end()) {
    here = blocks_.insert(here, {file, at, std::min(at + kBlockBytes, file->size)});
  }
  const int64_t end = ends_[file.get()] = std::min(at + bytes, here->end);
  here->unread -= end - at;
  pass_by(here);
  if (!here->expected) go_on(*here);
  if (!here->ticket) ask(*here);
  ask_next();
  return *here;
}

// Lets go of what lies before a block: of a file that is read from front to back, or in the order in
// which it is expected. Threads that read together are not far apart, and some bytes, at the borders of
// their parts, are read twice.
void ReadAhead::pass_by(Blocks::iterator here) {
  constexpr int64_t kBehind = 6 * kBlockBytes;
  int64_t behind = 0;
  for (auto at = here; at != blocks_.begin();) {
    const auto block = std::prev(at);
    const bool is_alike =
        block->expected == here->expected && (here->expected || block->file == here->file);
    if (is_alike) behind += block->end - block->begin;
    if (is_alike && behind > (block->unread > 0 ? kMostBytes : kBehind)) {
      drop(block);
    } else {
      at = block;
    }
  }
}

// Expects the next blocks of a file, too.
void ReadAhead::go_on(const Block& here) {
  constexpr int kBlocks = 8;
  int64_t end = here.end;
  for (const Block& block : blocks_) {
    if (block.file == here.file && !block.expected) end = std::max(end, block.end);
  }
  while (end < std::min(here.file->size, here.end + kBlocks * kBlockBytes)) {
    blocks_.push_back({here.file, end, std::min(end + kBlockBytes, here.file->size)});
    end = blocks_.back().end;
  }
}

// Drops what is left of a file that was read from front to back.
void ReadAhead::let_go(const std::shared_ptr<FarFile>& file) {
  const std::scoped_lock lock(mutex_);
  for (auto at = blocks_.begin(); at != blocks_.end();) {
    const auto block = at++;
    if (!block->expected && block->file == file) drop(block);
  }
}

void ReadAhead::read(const std::shared_ptr<FarFile>& file, int64_t begin, MutableBytes out) {
  while (!out.empty()) {
    const Block block = find(file, begin, std::ssize(out));
    const UninitializedBytes& bytes = fetcher_.wait(block.ticket);
    const auto size = std::min(static_cast<int64_t>(out.size()), block.end - begin);
    std::memcpy(out.data(), bytes.data() + (begin - block.begin), static_cast<size_t>(size));
    begin += size;
    out = out.subspan(static_cast<size_t>(size));
    if (!block.expected && begin == file->size) let_go(file);
  }
}

}  // namespace mxfp4
