#include "formats/os/exchange.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int code) {
  throw Error::output(fmt::format("cannot be replaced: {}", std::strerror(code)))
      .in_file(path.string());
}

}  // namespace

bool exchange_names(const std::filesystem::path& a, const std::filesystem::path& b) {
  if (renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return true;
  const int code = errno;
  if (code == EINVAL || code == ENOSYS || code == ENOTSUP) return false;
  fail(b, code);
}

void rename_to(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) fail(to, errno);
}

}  // namespace mxfp4
