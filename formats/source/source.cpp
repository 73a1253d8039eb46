#include "formats/source/source.hpp"

#include <fmt/format.h>

#include "lib/core/error.hpp"

namespace mxfp4 {

void Source::check_unchanged() const {
  for (const FileStatus& then : files()) {
    in_context(then.path.string(), [&] {
      const FileStatus now = describe_file(then.path);
      if (now.size != then.size) {
        throw Error::input(fmt::format("changed while it was read: {} bytes, {} when it was opened",
                                       now.size, then.size));
      }
      if (now.mtime_ns != then.mtime_ns) {
        throw Error::input("changed while it was read: its modification time moved");
      }
    });
  }
}

}  // namespace mxfp4
