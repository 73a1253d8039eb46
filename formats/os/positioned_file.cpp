#include "formats/os/positioned_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "formats/os/input_fault.hpp"
#include "formats/os/interrupts.hpp"

namespace mxfp4 {
namespace {

// The least alignment of direct reads. Most devices want 512 or 4,096 bytes, and a multiple of what
// they want is as good.
constexpr int64_t kUsualAlignment = 4096;

InputFault system_error(std::string_view what) {
  const bool missing = errno == ENOENT || errno == ENOTDIR;
  InputFault error(missing ? Fault::kMissing : Fault::kUnreadable,
                   fmt::format("{}: {}", what, std::generic_category().message(errno)));
  if (!missing) error.unreadable();
  return error;
}

InputFault became_shorter() { return {Fault::kSize, "became shorter while it was read"}; }

// What offsets, sizes and addresses of direct reads are multiples of. 0: the file system says that
// it has no direct reads.
int64_t direct_alignment(int descriptor) {
#ifdef STATX_DIOALIGN
  struct statx status {};
  if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
      (status.stx_mask & STATX_DIOALIGN) != 0) {
    const auto stated = std::max(status.stx_dio_offset_align, status.stx_dio_mem_align);
    return stated == 0 ? 0 : std::max<int64_t>(stated, kUsualAlignment);
  }
#else
  static_cast<void>(descriptor);
#endif
  return kUsualAlignment;
}

// False where the file system has no direct reads.
bool set_direct(int descriptor, bool direct) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 &&
         ::fcntl(descriptor, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

}  // namespace

PositionedFile::PositionedFile(const std::filesystem::path& path)
    : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) throw system_error("cannot be opened");
  examine();
}

PositionedFile::PositionedFile(int descriptor)
    : descriptor_(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)) {
  if (descriptor_ < 0) throw system_error("cannot be opened");
  examine();
}

// Takes the size; closes what is not a regular file.
void PositionedFile::examine() {
  struct stat status {};
  const bool examined = ::fstat(descriptor_, &status) == 0;
  if (examined && S_ISREG(status.st_mode)) {
    size_ = status.st_size;
    return;
  }
  const InputFault error = examined ? InputFault(Fault::kUnreadable, "is not a regular file")
                                    : system_error("cannot be examined");
  ::close(std::exchange(descriptor_, -1));
  throw error;
}

PositionedFile::PositionedFile(PositionedFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      far_(std::move(other.far_)),
      size_(other.size_),
      alignment_(other.alignment_) {}

PositionedFile& PositionedFile::operator=(PositionedFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(far_, other.far_);
  std::swap(size_, other.size_);
  std::swap(alignment_, other.alignment_);
  return *this;
}

PositionedFile::~PositionedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PositionedFile::make_direct() {
  if (far_) return;
  const int64_t alignment = direct_alignment(descriptor_);
  if (alignment > 0 && set_direct(descriptor_, true)) alignment_ = alignment;
}

void PositionedFile::forget_cached() const {
  (void)::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
}

bool PositionedFile::is_direct() const {
  return alignment_ > 1 && (::fcntl(descriptor_, F_GETFL) & O_DIRECT) != 0;
}

ConstBytes PositionedFile::read_direct(int64_t offset, int64_t bytes, MutableBytes memory) const {
  const auto round_down = [this](int64_t value) { return value / alignment_ * alignment_; };
  const int64_t begin = round_down(offset);
  const int64_t needed = offset + bytes - begin;
  const int64_t whole = round_down(needed + alignment_ - 1);
  void* aligned = memory.data();
  size_t room = memory.size();
  std::align(static_cast<size_t>(alignment_), static_cast<size_t>(whole), aligned, room);
  auto* const to = static_cast<std::byte*>(aligned);
  if (far_) {
    far_(begin, {to, static_cast<size_t>(needed)});
    return {to, static_cast<size_t>(bytes)};
  }
  bool direct = true;
  const auto read_ordinarily = [&] { set_direct(descriptor_, direct = false); };
  Interrupts interrupts;
  for (int64_t done = 0; done < needed;) {
    const ssize_t got =
        ::pread(descriptor_, to + done, static_cast<size_t>(whole - done), begin + done);
    if (got < 0 && interrupts.again()) continue;
    if (got < 0 && errno == EINVAL && direct) {
      // Some file systems refuse only now. Without the flag the same read is an ordinary one.
      read_ordinarily();
      continue;
    }
    if (got < 0) throw system_error("cannot be read");
    if (got == 0) throw became_shorter();
    // A direct read goes on at a multiple of the alignment; behind a part of one, an ordinary
    // read does.
    const int64_t behind = done + got;
    if (direct && behind < needed && round_down(behind) == done) read_ordinarily();
    done = direct && behind < needed ? round_down(behind) : behind;
  }
  return {to + (offset - begin), static_cast<size_t>(bytes)};
}

void PositionedFile::read(int64_t offset, MutableBytes out) const {
  read(offset, std::span<const MutableBytes>(&out, 1));
}

void PositionedFile::read(int64_t offset, std::span<const MutableBytes> parts) const {
  if (far_) {
    for (const MutableBytes part : parts) {
      far_(offset, part);
      offset += std::ssize(part);
    }
    return;
  }
  constexpr size_t kPartsAtOnce = 64;
  std::array<iovec, kPartsAtOnce> vector{};
  size_t done = 0;  // of the first part
  Interrupts interrupts;
  while (!parts.empty()) {
    size_t count = 0;
    for (const MutableBytes& part : parts.first(std::min(parts.size(), kPartsAtOnce))) {
      const size_t skip = count == 0 ? done : 0;
      vector[count++] = {part.data() + skip, part.size() - skip};
    }
    const ssize_t got = ::preadv(descriptor_, vector.data(), static_cast<int>(count), offset);
    if (got < 0 && interrupts.again()) continue;
    if (got < 0) throw system_error("cannot be read");
    offset += got;
    done += static_cast<size_t>(got);
    const bool ended = got == 0 && done < parts.front().size();
    if (ended) throw became_shorter();
    while (!parts.empty() && done >= parts.front().size()) {
      done -= parts.front().size();
      parts = parts.subspan(1);
    }
  }
}

}  // namespace mxfp4
