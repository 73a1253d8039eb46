#include "formats/os/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <fstream>
#include <new>
#include <utility>

namespace mxfp4 {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kMaxAnswer = uint64_t{1} << 30;
constexpr uint64_t kChildMemory = uint64_t{1} << 30;

// What goes through the socket, in both directions: a head, then `size` bytes. An error's are its
// text, a NUL and its hint. The last message of an answer is none of kData.
enum class Tag : uint64_t { kRequest = 1, kData, kDone, kError, kInternal, kNoMemory };
struct Head {
  Tag tag;
  uint64_t size;
};

// Whether everything was sent; false: the other end is closed.
bool send_message(int fd, Tag tag, std::string_view bytes) {
  const Head head{tag, bytes.size()};
  std::string message(reinterpret_cast<const char*>(&head), sizeof head);
  message += bytes;
  for (std::string_view left = message; !left.empty();) {
    const ssize_t sent = ::send(fd, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    left.remove_prefix(sent < 0 ? 0 : static_cast<size_t>(sent));
  }
  return true;
}

// Whether `size` bytes came; false: the other end is closed. Calls `wait` before each part.
bool receive_bytes(int fd, void* out, size_t size, const std::function<void()>& wait) {
  auto* at = static_cast<char*>(out);
  while (size > 0) {
    wait();
    const ssize_t got = ::recv(fd, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

// Limits the child's memory; true if the caller's own limit is the tighter one: the child's failure
// shows nothing about the file then.
bool plan_memory(rlimit& limit) {
  ::getrlimit(RLIMIT_AS, &limit);
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  if (!(statm >> pages)) return limit.rlim_cur != RLIM_INFINITY;
  const rlim_t wanted = pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + kChildMemory;
  const bool tight = limit.rlim_cur < wanted;  // RLIM_INFINITY is the largest number
  if (!tight) limit.rlim_cur = wanted;
  return tight;
}

void enter_child(const rlimit& memory) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent handles interrupts. A crash of the child must leave neither a report nor a core.
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(fault, SIG_DFL);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int null = ::open("/dev/null", O_RDWR);
  for (int stream = 0; stream <= 2; ++stream) ::dup2(null, stream);
  ::setrlimit(RLIMIT_AS, &memory);
}

// One request and its answer; false: the parent is gone.
bool serve_one(int fd, const Serve& serve) {
  Head head{};
  if (!receive_bytes(fd, &head, sizeof head, [] {})) return false;
  try {
    std::string request(head.size, '\0');
    if (!receive_bytes(fd, request.data(), request.size(), [] {})) return false;
    serve(request, [fd](std::string_view bytes) {
      if (!send_message(fd, Tag::kData, bytes)) ::_exit(0);
    });
    return send_message(fd, Tag::kDone, "");
  } catch (const Error& error) {
    const Tag tag = error.kind() == ErrorKind::kInput ? Tag::kError : Tag::kInternal;
    return send_message(fd, tag, std::string(error.what()) + '\0' + error.hint_text());
  } catch (const std::bad_alloc&) {
    return send_message(fd, Tag::kNoMemory, "");
  } catch (const std::exception& error) {
    return send_message(fd, Tag::kError, error.what());
  }
}

}  // namespace

SharedMemory::SharedMemory(size_t size) {
  void* start = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  bytes_ = {static_cast<std::byte*>(start), size};
}

SharedMemory::~SharedMemory() { ::munmap(bytes_.data(), bytes_.size()); }

ChildProcess::ChildProcess(std::string what, const Serve& serve, ChildLimits limits)
    : what_(std::move(what)), limits_(limits) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error::input(fmt::format("no socket: {}", std::strerror(errno)));
  }
  rlimit memory{};
  tight_ = plan_memory(memory);
  fd_ = ends[0];
  pid_ = ::fork();
  if (pid_ == 0) {
    ::close(fd_);
    enter_child(memory);
    while (serve_one(ends[1], serve)) {
    }
    ::_exit(0);  // no destructors, no buffers: they are the parent's
  }
  const int error = errno;
  ::close(ends[1]);
  if (pid_ > 0) return;
  ::close(fd_);
  throw Error::input(fmt::format("no process: {}", std::strerror(error)));
}

ChildProcess::~ChildProcess() {
  ::close(fd_);
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string ChildProcess::ask(std::string_view request) {
  if (pid_ == 0 || !send_message(fd_, Tag::kRequest, request)) refuse_death();
  std::string answer;
  while (true) {
    Head head{};
    receive(&head, sizeof head);
    if (head.size > kMaxAnswer - answer.size()) {
      stop(Error::input(fmt::format("{} gave too much: damaged file", what_)));
    }
    const size_t before = answer.size();
    answer.resize(before + head.size);
    receive(answer.data() + before, head.size);
    if (head.tag == Tag::kData) continue;
    if (head.tag == Tag::kDone) return answer;
    if (head.tag == Tag::kNoMemory) {
      if (tight_) throw std::bad_alloc();
      throw Error::input(fmt::format("{} takes more than 1 GiB of memory: damaged file", what_));
    }
    const std::string text = answer.substr(before);
    const size_t end = std::min(text.find('\0'), text.size());
    Error error(head.tag == Tag::kInternal ? ErrorKind::kInternal : ErrorKind::kInput,
                text.substr(0, end));
    if (end + 1 < text.size()) error.hint(text.substr(end + 1));
    throw error;
  }
}

void ChildProcess::receive(void* out, size_t size) {
  if (!receive_bytes(fd_, out, size, [this] { wait_for_life(); })) refuse_death();
}

// What the death of a child says. Under the caller's own limit of memory, nothing about the file.
void ChildProcess::refuse_death() {
  if (pid_ != 0) {
    ::shutdown(fd_, SHUT_RDWR);  // it ends if it lives
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
  }
  if (!WIFSIGNALED(status_)) throw Error::input(fmt::format("{} failed: damaged file", what_));
  const int signal = WTERMSIG(status_);
  if (signal == SIGKILL) {
    throw Error::input(fmt::format("{} was killed (signal {})", what_, signal))
        .hint("the system kills a process if memory is short");
  }
  if (!tight_) {
    throw Error::input(fmt::format("{} failed (signal {}): damaged file", what_, signal));
  }
  throw Error::input(fmt::format("{} failed (signal {})", what_, signal))
      .hint("the limit of memory (ulimit -v) leaves it less than 1 GiB, which may be the cause");
}

// For a child whose answer is not read to its end.
void ChildProcess::stop(const Error& error) const {
  ::kill(pid_, SIGKILL);
  throw Error(error);
}

// Processor time so far; zero if the kernel does not tell.
milliseconds ChildProcess::computed() const {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return {};
  return std::chrono::duration_cast<milliseconds>(std::chrono::seconds(time.tv_sec) +
                                                  std::chrono::nanoseconds(time.tv_nsec));
}

// Returns when there is something to read; throws when the child is silent for too long.
void ChildProcess::wait_for_life() const {
  const auto begin = Clock::now();
  const milliseconds before = computed();
  const milliseconds look = std::min(limits_.cpu_time, limits_.wall_time) / 10;
  while (true) {
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    const int events = ::poll(&ready, 1, static_cast<int>(look.count()));
    if (events > 0) return;
    if (events < 0 && errno != EINTR) {
      stop(Error::input(fmt::format("{}: poll: {}", what_, std::strerror(errno))));
    }
    if (computed() - before >= limits_.cpu_time) {
      stop(Error::input(fmt::format("{} came to no end: damaged file", what_)));
    }
    if (Clock::now() - begin >= limits_.wall_time) {
      stop(Error::input(fmt::format("{} gave no answer", what_))
               .hint("does the storage that holds the file answer?"));
    }
  }
}

}  // namespace mxfp4
