#include "formats/os/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <exception>
#include <fstream>
#include <new>
#include <utility>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
constexpr uint64_t kChildMemory = uint64_t{1} << 30;

// The stream is a sequence of frames: tag, length, payload. An error's payload is its text, a NUL
// and its hint. A child that ended well has sent kDone, kError, kInternal or kNoMemory last.
enum class Tag : char { kData = 'd', kDone = '.', kError = 'e', kInternal = 'i', kNoMemory = 'm' };
constexpr size_t kFrameHead = 1 + sizeof(uint64_t);

void send_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t sent = ::write(fd, data, size);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) ::_exit(1);  // the parent has closed its end
    data += sent;
    size -= static_cast<size_t>(sent);
  }
}

void send_frame(int fd, Tag tag, std::string_view payload) {
  std::array<char, kFrameHead> head{static_cast<char>(tag)};
  const uint64_t length = payload.size();
  std::memcpy(head.data() + 1, &length, sizeof length);
  send_all(fd, head.data(), head.size());
  send_all(fd, payload.data(), payload.size());
}

// The limit that this process would set its child, and the one that it has itself.
struct MemoryLimits {
  rlim_t child = RLIM_INFINITY;  // unless the system does not say how much this process takes
  rlimit own{RLIM_INFINITY, RLIM_INFINITY};
  // Whether the child may take less than a damaged file is allowed to: its failure shows
  // nothing then.
  [[nodiscard]] bool tight() const { return own.rlim_cur != RLIM_INFINITY && own.rlim_cur < child; }
};

MemoryLimits memory_limits() {
  MemoryLimits limits;
  ::getrlimit(RLIMIT_AS, &limits.own);
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  if (statm >> pages) {
    limits.child = pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + kChildMemory;
  }
  return limits;
}

void limit_memory(const MemoryLimits& limits) {
  if (limits.child == RLIM_INFINITY || limits.tight()) return;
  const rlimit limit{limits.child, limits.own.rlim_max};
  ::setrlimit(RLIMIT_AS, &limit);
}

void enter_child(const MemoryLimits& limits) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent handles interrupts. A crash of the child must leave neither a report nor a core.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(fault, SIG_DFL);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int null = ::open("/dev/null", O_RDWR);
  for (int stream = 0; stream <= 2; ++stream) ::dup2(null, stream);
  limit_memory(limits);
}

[[noreturn]] void run_child(int fd, const MemoryLimits& limits,
                            const std::function<void(const Emit&)>& body) {
  enter_child(limits);
  try {
    body([fd](std::string_view bytes) { send_frame(fd, Tag::kData, bytes); });
    send_frame(fd, Tag::kDone, "");
  } catch (const Error& error) {
    const Tag tag = error.kind() == ErrorKind::kInput ? Tag::kError : Tag::kInternal;
    send_frame(fd, tag, std::string(error.what()) + '\0' + error.hint_text());
  } catch (const std::bad_alloc&) {
    send_frame(fd, Tag::kNoMemory, "");
  } catch (const std::exception& error) {
    send_frame(fd, Tag::kError, error.what());
  }
  ::_exit(0);  // no destructors, no buffers: they are the parent's
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  [[nodiscard]] int get() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

// Ends and reaps the child in every case.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    (void)wait();
  }
  // Processor time so far; zero if the kernel does not tell.
  [[nodiscard]] milliseconds computed() const {
    clockid_t clock{};
    timespec time{};
    if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return {};
    return std::chrono::duration_cast<milliseconds>(std::chrono::seconds(time.tv_sec) +
                                                    std::chrono::nanoseconds(time.tv_nsec));
  }
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_;
};

// Returns when there is something to read; throws when the child is silent for too long.
void wait_for_life(int fd, const Child& child, std::string_view what, ChildLimits limits) {
  const auto begin = Clock::now();
  const milliseconds computed = child.computed();
  const milliseconds look = std::min(limits.cpu_time, limits.wall_time) / 10;
  while (true) {
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    const int events = ::poll(&ready, 1, static_cast<int>(look.count()));
    if (events > 0) return;
    if (events < 0 && errno != EINTR) {
      throw Error::input(fmt::format("{}: poll: {}", what, std::strerror(errno)));
    }
    if (child.computed() - computed >= limits.cpu_time) {
      throw Error::input(fmt::format("{} came to no end: damaged file", what));
    }
    if (Clock::now() - begin >= limits.wall_time) {
      throw Error::input(fmt::format("{} gave no answer", what))
          .hint("does the storage that holds the file answer?");
    }
  }
}

std::string receive(int fd, const Child& child, std::string_view what, ChildLimits limits) {
  std::string stream;
  std::array<char, 1 << 14> buffer;
  while (true) {
    wait_for_life(fd, child, what, limits);
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return stream;
    stream.append(buffer.data(), static_cast<size_t>(got));
    if (stream.size() > kMaxBytes) {
      throw Error::input(fmt::format("{} gave too much: damaged file", what));
    }
  }
}

[[noreturn]] void refuse_memory(std::string_view what, const MemoryLimits& limits) {
  if (limits.tight()) throw std::bad_alloc();
  throw Error::input(fmt::format("{} takes more than 1 GiB of memory: damaged file", what));
}

// What the death of a child says. Under the caller's own limit of memory, nothing about the file.
[[noreturn]] void refuse_death(std::string_view what, int status, const MemoryLimits& limits) {
  if (!WIFSIGNALED(status)) throw Error::input(fmt::format("{} failed: damaged file", what));
  const int signal = WTERMSIG(status);
  if (signal == SIGKILL) {
    throw Error::input(fmt::format("{} was killed (signal {})", what, signal))
        .hint("the system kills a process if memory is short");
  }
  if (!limits.tight()) {
    throw Error::input(fmt::format("{} failed (signal {}): damaged file", what, signal));
  }
  throw Error::input(fmt::format("{} failed (signal {})", what, signal))
      .hint("the limit of memory (ulimit -v) leaves it less than 1 GiB, which may be the cause");
}

// Joins the data frames; throws what the child threw. The flag is false if the child was cut off.
std::pair<std::string, bool> unpack_stream(std::string_view stream, std::string_view what,
                                           const MemoryLimits& limits) {
  std::string data;
  while (stream.size() >= kFrameHead) {
    const auto tag = static_cast<Tag>(stream[0]);
    uint64_t length = 0;
    std::memcpy(&length, stream.data() + 1, sizeof length);
    stream.remove_prefix(kFrameHead);
    if (length > stream.size()) break;
    const std::string_view payload = stream.substr(0, length);
    stream.remove_prefix(length);
    if (tag == Tag::kDone) return {std::move(data), true};
    if (tag == Tag::kNoMemory) refuse_memory(what, limits);
    if (tag == Tag::kError || tag == Tag::kInternal) {
      const size_t end = std::min(payload.find('\0'), payload.size());
      Error error(tag == Tag::kError ? ErrorKind::kInput : ErrorKind::kInternal,
                  std::string(payload.substr(0, end)));
      if (end + 1 < payload.size()) error.hint(std::string(payload.substr(end + 1)));
      throw error;
    }
    data.append(payload);
  }
  return {{}, false};
}

}  // namespace

std::string run_in_child(std::string_view what, const std::function<void(const Emit&)>& body,
                         ChildLimits limits) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error::input(fmt::format("no pipe: {}", std::strerror(errno)));
  }
  Descriptor from_child(ends[0]);
  Descriptor to_parent(ends[1]);
  const MemoryLimits memory = memory_limits();
  const pid_t pid = ::fork();
  if (pid < 0) throw Error::input(fmt::format("no process: {}", std::strerror(errno)));
  if (pid == 0) run_child(to_parent.get(), memory, body);
  Child child(pid);
  to_parent.close();
  const std::string stream = receive(from_child.get(), child, what, limits);
  const int status = child.wait();
  auto [data, complete] = unpack_stream(stream, what, memory);
  if (!complete) refuse_death(what, status, memory);
  return std::move(data);
}

}  // namespace mxfp4
