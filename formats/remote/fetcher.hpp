// Ranges of files on other machines, many at once, over HTTP: hubs and plain servers.
//
// A thread of its own drives libcurl. A range that breaks off goes on where it was; a server that
// is busy is asked again when it says, or ever later. What ends in an Error: an answer that is not
// the range that was asked for, a file that is no longer the one it was, a refusal. A secret goes to
// the host that it is for and to no other: this follows redirects itself, and sends none with them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "formats/os/uninitialized_bytes.hpp"
#include "formats/remote/far_file.hpp"

namespace mxfp4 {

// A range on its way.
struct FarRange;
using FarTicket = std::shared_ptr<FarRange>;

class Fetcher {
 public:
  static constexpr size_t kConnections = 24;

  // Throws Error::input if there is no libcurl.
  Fetcher();
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;
  ~Fetcher();  // drops what is on its way

  // Asks for `size` bytes of the file from `begin` on. Thread-safe, as all that follows.
  [[nodiscard]] FarTicket ask(std::shared_ptr<FarFile> file, int64_t begin, int64_t size);
  // The same of the first bytes, where the file may end before. A server without ranges may send all.
  [[nodiscard]] FarTicket ask_front(std::shared_ptr<FarFile> file, int64_t size);

  // Waits for the bytes, which live as long as the ticket. Throws Error::input naming the file.
  [[nodiscard]] const UninitializedBytes& wait(const FarTicket& range);
  const UninitializedBytes& wait(FarTicket&&) = delete;
  // The same; null if the server has no such file.
  [[nodiscard]] const UninitializedBytes* wait_if_there(const FarTicket& range);

 private:
  using Clock = std::chrono::steady_clock;

  FarTicket add(std::shared_ptr<FarFile> file, bool front, int64_t begin, int64_t size);
  void run();
  int start_waiting();
  void start(const FarTicket& ticket);
  bool take_messages();
  void judge(FarRange& range, int result);
  void refuse(FarRange& range, long status);
  static void follow(FarRange& range);
  static void retry(FarRange& range, const std::string& why, bool told = false);
  void finish(FarRange& range);

  void* multi_;
  int64_t stall_seconds_;  // without a byte
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<FarTicket> asked_;  // guarded by mutex_
  bool stop_ = false;            // guarded by mutex_
  // The thread's own:
  std::list<FarTicket> waiting_;  // in the order in which they were asked for
  std::list<FarTicket> active_;
  bool answered_ = false;           // a server has, so that the network works
  Clock::time_point not_before_{};  // a busy server said when it may be asked again
  std::thread thread_;
};

}  // namespace mxfp4
