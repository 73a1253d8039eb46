#include "formats/source/source.hpp"

#include "lib/core/error.hpp"

namespace mxfp4 {

void Source::check_unchanged() const {
  for (const FileStatus& then : files()) {
    in_file(then.path.string(), [&] { require_same(then, describe_file(then.path)); });
  }
}

}  // namespace mxfp4
