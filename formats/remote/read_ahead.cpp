#include "formats/remote/read_ahead.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

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
                         blocks_.back().end == begin && !blocks_.back().ticket &&
                         blocks_.back().end - blocks_.back().begin < kBlockBytes;
    if (!goes_on) blocks_.push_back({file, begin, begin, true});
    Block& block = blocks_.back();
    begin = block.end = std::min(end, block.begin + kBlockBytes);
  }
}

void ReadAhead::ask(Block& block) {
  const int64_t size = block.end - block.begin;
  block.ticket = fetcher_.ask(block.file, block.begin, size);
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
  const bool in_order = last != ends_.end() && last->second == at && at + bytes <= file->size;
  auto here = std::ranges::find_if(blocks_, [&](const Block& block) {
    return block.file == file && block.begin <= at && at < block.end;
  });
  if (here == blocks_.end() && !in_order) {
    const int64_t size = std::min(bytes, kBlockBytes);
    ends_[file.get()] = at + size;
    return {file, at, at + size, false, fetcher_.ask(file, at, size)};
  }
  if (here == blocks_.end()) {
    here = blocks_.insert(here, {file, at, std::min(at + kBlockBytes, file->size)});
  }
  ends_[file.get()] = std::min(at + bytes, here->end);
  pass_by(*here);
  if (!here->expected) go_on(*here);
  if (!here->ticket) ask(*here);
  ask_next();
  return *here;
}

// Lets go of what lies before a block. Threads that read a file together are not far apart.
void ReadAhead::pass_by(const Block& here) {
  constexpr int64_t kBehind = 2 * kBlockBytes;
  for (auto at = blocks_.begin(); &*at != &here;) {
    const auto block = at++;
    const bool passed = here.expected ? block->expected
                                      : block->file == here.file && !block->expected &&
                                            block->end + kBehind < here.begin;
    if (passed) drop(block);
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

// Drops an expected block that was read to its end; with its last block, all of another file's.
void ReadAhead::let_go(const Block& read) {
  if (!read.expected && read.end < read.file->size) return;
  const std::scoped_lock lock(mutex_);
  for (auto at = blocks_.begin(); at != blocks_.end();) {
    const auto block = at++;
    const bool is_it = block->ticket == read.ticket;
    if (is_it || (!read.expected && !block->expected && block->file == read.file)) drop(block);
    if (is_it && read.expected) break;
  }
  ask_next();
}

void ReadAhead::read(const std::shared_ptr<FarFile>& file, int64_t begin, MutableBytes out) {
  while (!out.empty()) {
    const Block block = find(file, begin, std::ssize(out));
    const UninitializedBytes& bytes = fetcher_.wait(block.ticket);
    const auto size = std::min(static_cast<int64_t>(out.size()), block.end - begin);
    std::memcpy(out.data(), bytes.data() + (begin - block.begin), static_cast<size_t>(size));
    begin += size;
    out = out.subspan(static_cast<size_t>(size));
    if (begin == block.end) let_go(block);
  }
}

}  // namespace mxfp4
