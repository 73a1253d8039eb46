#include "formats/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "formats/lost_pages.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view action) {
  const int code = errno;
  throw Error::output(fmt::format("{}: {}: {}", path.string(), action, std::strerror(code)));
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path target) : target_(std::move(target)) {
  std::string name =
      (target_.parent_path() / fmt::format(".{}.tmp-XXXXXX", target_.filename().string())).string();
  descriptor_ = mkostemp(name.data(), O_CLOEXEC);
  if (descriptor_ < 0) fail(target_, "cannot create");
  temporary_ = name;
  // mkostemp makes files for their owner alone; what we publish has the usual permissions.
  const mode_t mask = umask(0);
  umask(mask);
  if (fchmod(descriptor_, 0666 & ~mask) != 0) fail(target_, "cannot set permissions");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(temporary_.c_str());
}

void AtomicFile::append(ConstBytes bytes) {
  check_lost_pages();
  size_ += static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail(target_, "cannot write");
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::commit() {
  check_lost_pages();
  if (fsync(descriptor_) != 0) fail(target_, "cannot fsync");
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
    throw Error::output(fmt::format("{}: cannot create: {}", directory.string(), error.message()));
  }
}

void sync_directory(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory.empty() ? "." : directory;
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(path, "cannot open");
  const int result = fsync(descriptor);
  close(descriptor);
  // Some file systems cannot sync a directory; their renames are as durable as they get.
  if (result != 0 && errno != EINVAL) fail(path, "cannot fsync");
}

}  // namespace mxfp4
