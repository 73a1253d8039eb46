// Ranges of files on other machines, many at once, over HTTP: hubs, plain servers, object storage.
//
// Each thread has a connection. A range that breaks off goes on where it was; a server that is busy
// is asked again when it says, or ever later. What ends in an Error: an answer that is not the range
// that was asked for, a file that is no longer the one it was, a refusal. A secret goes to the host
// that it is for and to no other: this follows redirects itself, and sends none with them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "formats/os/uninitialized_bytes.hpp"
#include "formats/remote/far_file.hpp"

namespace mxfp4 {

// A range on its way.
struct FarRange;
struct FarAnswer;
using FarTicket = std::shared_ptr<FarRange>;

class Fetcher {
 public:
  static constexpr size_t kConnections = 24;

  Fetcher() = default;
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;
  ~Fetcher();  // drops what is on its way

  // Asks for a range of a file, or sends one. Thread-safe, as all that follows. Throws Error::input if
  // there is no libcurl.
  [[nodiscard]] FarTicket add(FarRange range);
  // The same of the first bytes, where the file may end before. A server without ranges may send all.
  [[nodiscard]] FarTicket ask_front(std::shared_ptr<FarFile> file, int64_t size);

  // Waits for the bytes, which live as long as the ticket. Throws Error::input naming the file.
  [[nodiscard]] const UninitializedBytes& wait(const FarTicket& range);
  const UninitializedBytes& wait(FarTicket&&) = delete;
  // The same; null if the server has no such file, or what is sent does not meet its condition.
  [[nodiscard]] const UninitializedBytes* wait_if_there(const FarTicket& range);

 private:
  using Clock = std::chrono::steady_clock;

  // Memory of ranges that nobody has any more. The kernel would clear new pages, which takes longer
  // than a range on a fast line.
  struct Spare {
    std::mutex mutex;
    std::vector<UninitializedBytes> bytes;
  };

  void work();
  void fetch(void* easy, FarRange& range);
  void sleep_until(Clock::time_point time);
  int64_t refuse(FarRange& range, const FarAnswer& answer, const std::string& url);

  const std::shared_ptr<Spare> spare_ = std::make_shared<Spare>();
  std::atomic<bool> stop_{false};
  std::atomic<bool> answered_{false};  // a server has, so that the network works
  std::mutex mutex_;
  std::condition_variable wanted_, arrived_;
  std::deque<FarTicket> asked_;     // guarded by mutex_, as all below and FarFile::target
  Clock::time_point not_before_{};  // a busy server said when it may be asked again
  size_t idle_ = 0;                 // threads
  std::vector<std::thread> threads_;
};

}  // namespace mxfp4
