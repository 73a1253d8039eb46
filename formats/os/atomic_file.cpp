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
#include <string>
#include <system_error>
#include <utility>

#include "formats/os/truncated_maps.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// Spans in one pwritev(), which takes 1024 at most.
constexpr size_t kMaxSpans = 64;

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view action) {
  const int code = errno;
  throw Error::output(fmt::format("{}: {}", action, std::strerror(code))).in_file(path.string());
}

// A system call that meets missing pages of a truncated map fails, but raises no signal. Reading
// the pages here does, and the handler notes the file.
void touch(std::span<const iovec> parts) {
  constexpr size_t kPage = 4096;  // of the smallest pages; larger ones are touched more than once
  for (const iovec& part : parts) {
    const auto* bytes = static_cast<const volatile std::byte*>(part.iov_base);
    for (size_t at = 0; at < part.iov_len; at += kPage) (void)bytes[at];
  }
}

// Whether fchmod() failed with this errno because the file system has no modes.
bool has_no_modes(int code) {
  return code == EPERM || code == ENOTSUP || code == ENOSYS || code == EINVAL;
}

// Gives a file of mkostemp, which only its owner may use, the usual permissions. False with errno
// set if that fails.
bool set_usual_mode(int descriptor) {
  const mode_t mask = umask(0);
  umask(mask);
  return fchmod(descriptor, 0666 & ~mask) == 0 || has_no_modes(errno);
}

}  // namespace

int create_temporary(const std::filesystem::path& target, std::string& name) {
  name =
      (target.parent_path() / fmt::format(".{}.tmp-XXXXXX", target.filename().string())).string();
  const int descriptor = mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) fail(target, "cannot create");
  if (!set_usual_mode(descriptor)) {
    const int code = errno;
    close(descriptor);
    unlink(name.c_str());
    errno = code;
    fail(target, "cannot set permissions");
  }
  return descriptor;
}

AtomicFile::AtomicFile(std::filesystem::path target) : target_(std::move(target)) {
  std::string name;
  descriptor_ = create_temporary(target_, name);
  temporary_ = name;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(temporary_.c_str());
}

void AtomicFile::append(ConstBytes bytes) { write_at(size_, {&bytes, 1}); }

void AtomicFile::write_at(int64_t offset, std::span<const ConstBytes> spans) {
  check_truncation();
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
  while (!parts.empty()) {
    const ssize_t result =
        pwritev(descriptor_, parts.data(), static_cast<int>(parts.size()), offset);
    if (result < 0) {
      const int code = errno;
      if (code == EINTR) continue;
      if (code == EFAULT) touch(parts);
      check_truncation();
      errno = code;
      fail(target_, "cannot write");
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
  check_truncation();
  if (fsync(descriptor_) != 0) fail(target_, "cannot fsync");
  if (before) before();
  if (rename(temporary_.c_str(), target_.c_str()) != 0) fail(target_, "cannot rename into place");
  const int descriptor = std::exchange(descriptor_, -1);
  if (close(descriptor) != 0) fail(target_, "cannot close");
  sync_directory(target_.parent_path());
}

void write_file_atomically(const std::filesystem::path& target, std::string_view text) {
  AtomicFile file(target);
  file.append(std::as_bytes(std::span(text)));
  file.commit();
}

void make_directories(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    throw Error::output(fmt::format("cannot create: {}", error.message()))
        .in_file(directory.string());
  }
}

void remove_file(const std::filesystem::path& path) {
  if (std::remove(path.c_str()) != 0 && errno != ENOENT) fail(path, "cannot remove");
}

void require_removable(const std::filesystem::path& path) {
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
  if (access(directory.c_str(), W_OK | X_OK) != 0) fail(path, "cannot remove");
}

void sync_directory(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory.empty() ? "." : directory;
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(path, "cannot open");
  const int code = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  // Some file systems cannot sync a directory; their renames are as durable as they get.
  if (code == 0 || code == EINVAL) return;
  errno = code;
  fail(path, "cannot fsync");
}

}  // namespace mxfp4
