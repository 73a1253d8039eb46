#include "formats/os/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "formats/os/interrupts.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// Spans in one pwritev(), which takes 1024 at most.
constexpr size_t kMaxSpans = 64;

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view action) {
  const int code = errno;
  throw Error::output(fmt::format("{}: {}", action, std::strerror(code))).in_file(path.string());
}

// Six characters that no other process is likely to choose; O_EXCL refuses the name if one did.
std::string random_end() {
  static constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  thread_local std::minstd_rand random(std::random_device{}());
  std::string end(6, '0');
  for (char& letter : end) letter = kLetters[random() % kLetters.size()];
  return end;
}

}  // namespace

int create_temporary(const Directory& directory, const std::string& target, std::string& name) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    name = fmt::format(".{}.tmp-{}", target, random_end());
    const int descriptor = openat(directory.descriptor(), name.c_str(),
                                  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor >= 0) return descriptor;
    if (errno != EEXIST) break;
  }
  fail(directory.path() / target, "cannot create");
}

int write_error(ssize_t written) { return written == 0 ? ENOSPC : errno; }

AtomicFile::AtomicFile(Directory directory, std::string name)
    : directory_(std::move(directory)), name_(std::move(name)) {
  descriptor_ = create_temporary(directory_, name_, temporary_);
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlinkat(directory_.descriptor(), temporary_.c_str(), 0);
}

void AtomicFile::append(ConstBytes bytes) { write_at(size_, {&bytes, 1}); }

void AtomicFile::write_at(int64_t offset, std::span<const ConstBytes> spans) {
  std::array<iovec, kMaxSpans> parts;
  while (!spans.empty()) {
    const size_t count = std::min(spans.size(), parts.size());
    for (size_t i = 0; i < count; ++i) {
      // pwritev() only reads the bytes; iovec has no const because preadv() takes it too.
      parts[i] = {const_cast<std::byte*>(spans[i].data()), spans[i].size()};
    }
    offset = write_parts(std::span(parts).first(count), offset);
    spans = spans.subspan(count);
  }
  int64_t size = size_;
  while (size < offset && !size_.compare_exchange_weak(size, offset)) {
  }
}

// Writes all parts and returns the offset behind them.
int64_t AtomicFile::write_parts(std::span<iovec> parts, int64_t offset) {
  Interrupts interrupts;
  while (!parts.empty()) {
    const ssize_t result =
        pwritev(descriptor_, parts.data(), static_cast<int>(parts.size()), offset);
    const bool nothing = result == 0 && parts.front().iov_len > 0;
    if (result < 0 || nothing) {
      const int code = write_error(result);
      if (!nothing && interrupts.again()) continue;
      errno = code;
      fail(target(), "cannot write");
    }
    offset += result;
    auto written = static_cast<size_t>(result);
    while (!parts.empty() && written >= parts.front().iov_len) {
      written -= parts.front().iov_len;
      parts = parts.subspan(1);
    }
    if (!parts.empty()) {
      parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + written;
      parts.front().iov_len -= written;
    }
  }
  return offset;
}

void AtomicFile::commit(const std::function<void()>& before) {
  errno = sync_file(descriptor_);
  if (errno != 0) fail(target(), "cannot fsync");
  if (before) before();
  const int in = directory_.descriptor();
  if (renameat(in, temporary_.c_str(), in, name_.c_str()) != 0) {
    fail(target(), "cannot rename into place");
  }
  const int descriptor = std::exchange(descriptor_, -1);
  if (close(descriptor) != 0 && errno != EINTR) fail(target(), "cannot close");
  directory_.sync();
}

void write_atomically(const Directory& directory, const std::string& name, std::string_view text) {
  AtomicFile file(directory, name);
  file.append(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace mxfp4
