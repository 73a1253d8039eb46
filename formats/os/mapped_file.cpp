#include "formats/os/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "formats/checksum/checksum.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

constexpr size_t kHashPiece = size_t{4} << 20;
constexpr size_t kTextPiece = size_t{1} << 16;

Error system_error(std::string_view what) {
  const int code = errno;
  Error error = Error::input(fmt::format("{}: {}", what, std::generic_category().message(code)));
  const bool missing = code == ENOENT || code == ENOTDIR || code == ENAMETOOLONG;
  return missing ? error : error.unreadable();
}

SourceFile from_stat(const std::filesystem::path& path, const struct stat& st) {
  if (S_ISDIR(st.st_mode)) throw Error::input("is a directory, expected a file");
  if (!S_ISREG(st.st_mode)) throw Error::input("is not a regular file");
  constexpr int64_t kNanoseconds = 1'000'000'000;
  return {.path = path,
          .size = st.st_size,
          .mtime_ns = int64_t{st.st_mtim.tv_sec} * kNanoseconds + st.st_mtim.tv_nsec};
}

class Descriptor {
 public:
  // O_NONBLOCK: opening a FIFO must not wait for a writer; it has no effect on regular files.
  explicit Descriptor(const std::filesystem::path& path, int flags = O_NONBLOCK)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags)) {
    if (fd_ < 0) throw system_error("cannot be opened");
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(fd_); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] SourceFile describe(const std::filesystem::path& path) const {
    struct stat st {};
    if (::fstat(fd_, &st) != 0) {
      throw system_error("cannot be examined");
    }
    return from_stat(path, st);
  }

 private:
  int fd_;
};

// At most `size` bytes; 0 at the end.
size_t read_some(const Descriptor& descriptor, char* out, size_t size) {
  while (true) {
    const ssize_t got = ::read(descriptor.get(), out, size);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) throw system_error("cannot be read");
  }
}

}  // namespace

SourceFile describe_file(const std::filesystem::path& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) {
    throw system_error("cannot be opened");
  }
  return from_stat(path, st);
}

std::string read_text_file(const std::filesystem::path& path, int64_t max_bytes) {
  const Descriptor descriptor(path);
  const int64_t size = descriptor.describe(path).size;
  if (size > max_bytes) {
    throw Error::input(fmt::format("{} bytes, at most {} are read", size, max_bytes));
  }
  std::string text(static_cast<size_t>(size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const size_t got = read_some(descriptor, text.data() + done, text.size() - done);
    if (got == 0) throw Error::input("shrank while it was read");
    done += got;
  }
  return text;
}

std::string read_text_stream(const std::filesystem::path& path, int64_t max_bytes) {
  const Descriptor descriptor(path, 0);
  std::string text;
  size_t done = 0;
  size_t got = 0;
  do {
    text.resize(done + kTextPiece);
    got = read_some(descriptor, text.data() + done, kTextPiece);
    done += got;
    if (static_cast<int64_t>(done) > max_bytes) {
      throw Error::input(fmt::format("more than {} bytes", max_bytes));
    }
  } while (got > 0);
  text.resize(done);
  return text;
}

void release_pages(ConstBytes mapped) noexcept {
  static const auto kPage = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  // Pages that hold other bytes too stay.
  const auto begin = reinterpret_cast<uintptr_t>(mapped.data());
  const size_t skip = (kPage - begin % kPage) % kPage;
  if (mapped.size() < skip + kPage) return;
  const size_t size = (mapped.size() - skip) / kPage * kPage;
  (void)::madvise(const_cast<std::byte*>(mapped.data()) + skip, size, MADV_DONTNEED);
}

std::string checksum_of_mapped(ConstBytes mapped, const std::function<void()>& between) {
  Checksum sum;
  while (!mapped.empty()) {
    if (between) between();
    const ConstBytes piece = mapped.first(std::min(mapped.size(), kHashPiece));
    sum.update(piece);
    release_pages(piece);
    mapped = mapped.subspan(piece.size());
  }
  return sum.hex();
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  const Descriptor descriptor(path);
  file_ = descriptor.describe(path);
  if (file_.size == 0) return;
  const auto size = static_cast<size_t>(file_.size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor.get(), 0);
  if (address == MAP_FAILED) {
    throw system_error("cannot be mapped");
  }
  // Tensors are read from front to back, once. Advice only: a failure changes no result.
  (void)::madvise(address, size, MADV_SEQUENTIAL);
  bytes_ = {static_cast<const std::byte*>(address), size};
  watched_ = WatchedMap(bytes_, path.string());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : file_(std::move(other.file_)),
      bytes_(std::exchange(other.bytes_, {})),
      watched_(std::move(other.watched_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap();
    file_ = std::move(other.file_);
    bytes_ = std::exchange(other.bytes_, {});
    watched_ = std::move(other.watched_);
  }
  return *this;
}

MappedFile::~MappedFile() { unmap(); }

void MappedFile::unmap() noexcept {
  watched_ = {};
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  bytes_ = {};
}

}  // namespace mxfp4
