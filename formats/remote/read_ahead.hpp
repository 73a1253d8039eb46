// Bytes of far files, fetched before they are read. Who reads says in which order it will; what
// comes next is asked for in large ranges, many at once, into bounded memory.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "formats/remote/fetcher.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

struct FarPiece {
  std::shared_ptr<FarFile> file;
  int64_t begin = 0;
  int64_t size = 0;
};

class ReadAhead {
 public:
  static constexpr int64_t kBlockBytes = int64_t{8} << 20;
  static constexpr int64_t kMostBytes = int64_t{192} << 20;  // asked for and not read

  explicit ReadAhead(Fetcher& fetcher) : fetcher_(fetcher) {}

  // What will be read, in order, in place of what was expected before. Fetches each byte once.
  void expect(const std::vector<FarPiece>& pieces);
  // Fills `out`. What was expected before it is let go; what was not expected is fetched now.
  // Thread-safe. Throws Error::input naming the file.
  void read(const std::shared_ptr<FarFile>& file, int64_t begin, MutableBytes out);

 private:
  struct Block {
    std::shared_ptr<FarFile> file;
    int64_t begin = 0;
    int64_t end = 0;
    FarTicket ticket{};  // null: not asked for
  };

  FarTicket find(const std::shared_ptr<FarFile>& file, int64_t at, Block& found);
  void let_go(const Block& block, int64_t read_to);
  void ask_next();
  void read_now(const std::shared_ptr<FarFile>& file, int64_t begin, MutableBytes out);

  Fetcher& fetcher_;
  std::mutex mutex_;
  std::deque<Block> blocks_;  // guarded by mutex_; those that were asked for come first
  size_t asked_ = 0;          // guarded by mutex_
  int64_t asked_bytes_ = 0;   // guarded by mutex_
};

}  // namespace mxfp4
