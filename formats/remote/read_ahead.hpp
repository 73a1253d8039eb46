// Bytes of far files, fetched before they are read: in large ranges, many at once, into bounded
// memory. Who reads says in which order it will; of a file that is read from front to back without
// that, the next bytes are fetched, too.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "formats/remote/fetcher.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

class ReadAhead {
 public:
  static constexpr int64_t kBlockBytes = int64_t{8} << 20;
  static constexpr int64_t kMostBytes = int64_t{192} << 20;  // asked for and not read

  explicit ReadAhead(Fetcher& fetcher) : fetcher_(fetcher) {}

  // What will be read next, in about this order. Fetches each byte once.
  void expect(const std::shared_ptr<FarFile>& file, int64_t begin, int64_t size);
  void expect_nothing();
  // Fills `out`. Thread-safe. Throws Error::input naming the file.
  void read(const std::shared_ptr<FarFile>& file, int64_t begin, MutableBytes out);

 private:
  struct Block {
    std::shared_ptr<FarFile> file;
    int64_t begin = 0;
    int64_t end = 0;
    bool expected = false;  // else of a file that is read from front to back
    int64_t unread = 0;     // bytes, of an expected one
    FarTicket ticket{};     // null: not asked for
  };
  using Blocks = std::list<Block>;

  Block find(const std::shared_ptr<FarFile>& file, int64_t at, int64_t bytes);
  void ask(Block& block);
  void ask_next();
  void pass_by(Blocks::iterator here);
  void go_on(const Block& here);
  void let_go(const std::shared_ptr<FarFile>& file);
  void drop(Blocks::iterator block);

  Fetcher& fetcher_;
  std::mutex mutex_;
  Blocks blocks_;                           // guarded by mutex_, as all below
  int64_t asked_bytes_ = 0;                 // of those that were asked for
  std::map<const FarFile*, int64_t> ends_;  // where the last read of a file ended
};

}  // namespace mxfp4
