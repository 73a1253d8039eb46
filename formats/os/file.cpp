#include "formats/os/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "formats/os/interrupts.hpp"

namespace mxfp4 {
namespace {

constexpr size_t kTextPiece = size_t{1} << 16;

FileStatus from_stat(const std::filesystem::path& path, const struct stat& st) {
  if (S_ISDIR(st.st_mode)) throw Error::input("is a directory, expected a file");
  if (!S_ISREG(st.st_mode)) throw Error::input("is not a regular file");
  constexpr int64_t kNanoseconds = 1'000'000'000;
  return {.path = path,
          .size = st.st_size,
          .mtime_ns = int64_t{st.st_mtim.tv_sec} * kNanoseconds + st.st_mtim.tv_nsec,
          .ctime_ns = int64_t{st.st_ctim.tv_sec} * kNanoseconds + st.st_ctim.tv_nsec,
          .device = st.st_dev,
          .inode = st.st_ino,
          .mode = st.st_mode & 0777};
}

// The error of the last system call, from errno: "<what>: <reason>".
Error input_error(std::string_view what) {
  const int code = errno;
  Error error = Error::input(fmt::format("{}: {}", what, std::generic_category().message(code)));
  const bool missing = code == ENOENT || code == ENOTDIR || code == ENAMETOOLONG;
  return missing ? error : error.unreadable();
}

}  // namespace

// O_NONBLOCK has no effect on regular files.
InputFile::InputFile(const std::filesystem::path& path, bool wait, bool follow)
    : path_(path),
      descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | (wait ? 0 : O_NONBLOCK) |
                                           (follow ? 0 : O_NOFOLLOW))) {
  if (descriptor_ < 0) throw input_error("cannot be opened");
}

InputFile::~InputFile() { ::close(descriptor_); }

FileStatus InputFile::status() const {
  struct stat st {};
  if (::fstat(descriptor_, &st) != 0) throw input_error("cannot be examined");
  return from_stat(path_, st);
}

size_t InputFile::read_some(char* out, size_t size) const {
  Interrupts interrupts;
  while (true) {
    const ssize_t got = ::read(descriptor_, out, size);
    if (got >= 0) return static_cast<size_t>(got);
    if (!interrupts.again()) throw input_error("cannot be read");
  }
}

bool is_address(const std::filesystem::path& path) {
  const std::string_view text = path.native();
  const size_t scheme = text.find("://");
  return scheme != std::string_view::npos && scheme > 0 &&
         text.substr(0, scheme).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+") ==
             std::string_view::npos;
}

FileStatus describe_file(const std::filesystem::path& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) throw input_error("cannot be opened");
  return from_stat(path, st);
}

namespace {

std::string read_whole(const InputFile& file, int64_t size) {
  std::string text(static_cast<size_t>(size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const size_t got = file.read_some(text.data() + done, text.size() - done);
    if (got == 0) throw Error::input("shrank while it was read");
    done += got;
  }
  return text;
}

}  // namespace

std::string read_text_file(const std::filesystem::path& path, int64_t max_bytes) {
  const InputFile file(path);
  const int64_t size = file.status().size;
  if (size > max_bytes) {
    throw Error::input(fmt::format("{} bytes, at most {} are read", size, max_bytes));
  }
  return read_whole(file, size);
}

std::string read_same_file(const FileStatus& then) {
  const InputFile file(then.path, /*wait=*/false, /*follow=*/false);
  require_same(then, file.status());
  std::string text = read_whole(file, then.size);
  require_same(then, file.status());
  return text;
}

void require_same(const FileStatus& then, const FileStatus& now) {
  if (now.size != then.size) {
    throw Error::input(fmt::format("changed while it was read: {} bytes, {} when it was opened",
                                   now.size, then.size));
  }
  if (now.mtime_ns != then.mtime_ns) {
    throw Error::input("changed while it was read: its modification time moved");
  }
  if (now.inode != then.inode || now.device != then.device) {
    throw Error::input("changed while it was read: another file has its name");
  }
  if (now.ctime_ns != then.ctime_ns) {
    throw Error::input("changed while it was read: its change time moved");
  }
}

void keep_private(std::span<const FileStatus> files) {
  mode_t mask = umask(0777);
  for (const FileStatus& file : files) {
    mask |= ~file.mode & (S_IWGRP | S_IWOTH);
    if ((file.mode & S_IRGRP) == 0) mask |= S_IRWXG;
    if ((file.mode & S_IROTH) == 0) mask |= S_IRWXO;
  }
  umask(mask);
}

std::string read_text_stream(const std::filesystem::path& path, int64_t max_bytes) {
  const InputFile file(path, true);
  std::string text;
  size_t done = 0;
  size_t got = 0;
  do {
    text.resize(done + kTextPiece);
    got = file.read_some(text.data() + done, kTextPiece);
    done += got;
    if (static_cast<int64_t>(done) > max_bytes) {
      throw Error::input(fmt::format("more than {} bytes", max_bytes));
    }
  } while (got > 0);
  text.resize(done);
  return text;
}

std::filesystem::path current_directory() {
  std::error_code unknown;
  return std::filesystem::current_path(unknown);
}

}  // namespace mxfp4
