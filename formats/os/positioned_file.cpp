#include "formats/os/positioned_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

Error system_error(std::string_view what) {
  return Error::input(fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

}  // namespace

PositionedFile::PositionedFile(const std::filesystem::path& path)
    : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) throw system_error("cannot be opened");
  struct stat status {};
  const bool examined = ::fstat(descriptor_, &status) == 0;
  if (examined && S_ISREG(status.st_mode)) {
    size_ = status.st_size;
    return;
  }
  const Error error =
      examined ? Error::input("is not a regular file") : system_error("cannot be examined");
  ::close(descriptor_);
  throw error;
}

PositionedFile::PositionedFile(PositionedFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

PositionedFile& PositionedFile::operator=(PositionedFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

PositionedFile::~PositionedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PositionedFile::read(int64_t offset, MutableBytes out) const {
  read(offset, std::span<const MutableBytes>(&out, 1));
}

void PositionedFile::read(int64_t offset, std::span<const MutableBytes> parts) const {
  constexpr size_t kPartsAtOnce = 64;
  std::array<iovec, kPartsAtOnce> vector{};
  size_t done = 0;  // of the first part
  while (!parts.empty()) {
    size_t count = 0;
    for (const MutableBytes& part : parts.first(std::min(parts.size(), kPartsAtOnce))) {
      const size_t skip = count == 0 ? done : 0;
      vector[count++] = {part.data() + skip, part.size() - skip};
    }
    const ssize_t got = ::preadv(descriptor_, vector.data(), static_cast<int>(count), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error("cannot be read");
    offset += got;
    done += static_cast<size_t>(got);
    const bool ended = got == 0 && done < parts.front().size();
    if (ended) throw Error::input("became shorter while it was read");
    while (!parts.empty() && done >= parts.front().size()) {
      done -= parts.front().size();
      parts = parts.subspan(1);
    }
  }
}

}  // namespace mxfp4
