// Runs code that may crash on hostile input in a child process, which answers requests.
//
// Usage:  ChildProcess child("the parser", window, [&](std::string_view request, const Emit& emit) {...});
//         std::string answer = child.ask("list");
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "lib/core/error.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Hands bytes to the parent; a call without bytes is only a sign of life.
using Emit = std::function<void(std::string_view)>;
// What the child does with a request. What it changes in memory stays for the next request.
using Serve = std::function<void(std::string_view request, const Emit&)>;

// How long a child may go without a sign of life while the parent waits. The limit of processor
// time is short because a damaged file can make a child compute without end; slow storage and a
// loaded machine only make it wait.
struct ChildLimits {
  std::chrono::milliseconds cpu_time{10'000};  // processor time of the child
  std::chrono::milliseconds wall_time{300'000};
};

// Memory that a process shares with the children that it starts later.
class SharedMemory {
 public:
  // Throws std::bad_alloc.
  explicit SharedMemory(size_t size);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();
  [[nodiscard]] MutableBytes bytes() const { return bytes_; }

 private:
  MutableBytes bytes_;
};

// A child of this process; the destructor ends it, as does the end of the thread that started it.
//
// Its memory is limited to 1 GiB above the caller's, or by the caller's own limit, under which it
// throws std::bad_alloc if it has no memory; its standard streams are /dev/null. Start it before
// the process has other threads: a lock that one of them holds at that moment stays locked in the
// child. glibc's allocator and this project's code hold no such lock; a sanitizer's allocator and a
// caller's own libraries may.
class ChildProcess {
 public:
  // `what` names the child in errors. Throws Error::input if no process can be made.
  ChildProcess(std::string what, const Serve& serve, ChildLimits limits = {});
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  // What `serve` emitted, in order. An Error that leaves it is thrown here again, as Error::input
  // or Error::internal; the child can be asked again. Throws Error::input, named after `what`, if
  // the child dies, exceeds its limits, or emits more than 1 GiB. A damaged file may have made the
  // child emit anything, so check what it emitted. One call at a time.
  [[nodiscard]] std::string ask(std::string_view request);

 private:
  void receive(void* out, size_t size);
  [[noreturn]] void refuse_death();
  [[noreturn]] void stop(const Error& error) const;
  [[nodiscard]] std::chrono::milliseconds computed() const;
  void wait_for_life() const;

  std::string what_;
  ChildLimits limits_;
  bool tight_ = false;  // the caller's own limit leaves the child less than 1 GiB
  pid_t pid_ = 0;
  int fd_ = -1;     // this end of the socket
  int status_ = 0;  // as of waitpid(), when pid_ is 0
};

}  // namespace mxfp4
