#include "formats/os/mapped_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

namespace mxfp4 {

void release_pages(ConstBytes mapped) noexcept {
  static const auto kPage = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  // Pages that also hold bytes outside of `mapped` stay.
  const auto begin = reinterpret_cast<uintptr_t>(mapped.data());
  const size_t skip = (kPage - begin % kPage) % kPage;
  if (mapped.size() < skip + kPage) return;
  const size_t size = (mapped.size() - skip) / kPage * kPage;
  (void)::madvise(const_cast<std::byte*>(mapped.data()) + skip, size, MADV_DONTNEED);
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  const InputFile file(path);
  file_ = file.status();
  if (file_.size == 0) return;
  const auto size = static_cast<size_t>(file_.size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (address == MAP_FAILED) throw input_error("cannot be mapped");
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
