#include "formats/output/given_path.hpp"

#include <fmt/format.h>

#include <string>
#include <system_error>

#include "formats/output/unfinished.hpp"
#include "formats/remote/files_at.hpp"
#include "formats/source/source.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// The error for a path that is not a blob, with what it seems to be instead.
Error no_blob(const fs::path& path) {
  std::error_code ignored;
  const std::string name = path.string();
  if (!is_address(path) && !fs::exists(path, ignored)) {
    return Error::input("cannot be opened: No such file or directory").in_file(name);
  }
  if (!is_folder_at(path)) {
    return Error::input("not a directory; a blob is one").in_file(name);
  }
  std::error_code unseen;
  if (!fs::exists(path / kManifestName, unseen) && unseen) {
    return Error::input(fmt::format("cannot be opened: {}", unseen.message()))
        .in_file((path / kManifestName).string());
  }
  if (const auto part = part_of_blob(path)) return *part;
  return Error::input(fmt::format("no {} here, so no complete blob", kManifestName)).in_file(name);
}

}  // namespace

std::vector<std::filesystem::path> require_blobs(const std::filesystem::path& path) {
  refuse_unfinished(path);
  std::vector<std::filesystem::path> blobs = find_blobs(path);
  if (!blobs.empty()) return blobs;
  throw no_blob(path);
}

BlobRanks open_blob_ranks(const fs::path& path) { return read_ranks(require_blobs(path)); }

fs::path whole_of(const fs::path& path) {
  std::error_code ignored;
  const bool part = path.filename() == kConfigName || path.filename() == kManifestName;
  if (!part || !fs::is_regular_file(path, ignored)) return path;
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void refuse_blob_folder_in(const fs::path& checkpoint, const fs::path& output) {
  std::error_code ignored;
  const bool whole = fs::is_directory(checkpoint, ignored);
  const fs::path directory =
      fs::weakly_canonical(whole ? checkpoint : checkpoint.parent_path() / ".", ignored);
  // OUT may be a link: what counts is where it lies, and where it leads.
  const fs::path given = (fs::absolute(output, ignored) / "").lexically_normal().parent_path();
  for (const fs::path& place :
       {fs::weakly_canonical(given.parent_path(), ignored) / given.filename(),
        fs::weakly_canonical(given, ignored)}) {
    const fs::path below = place.lexically_relative(directory / "").lexically_normal();
    const std::string name = below.empty() ? "" : below.begin()->string();
    if (name != kBlobFolder && !is_rank_directory(name)) continue;
    throw Error::usage(fmt::format("--output: {}: {} in the checkpoint's directory would make that "
                                   "directory a blob",
                                   output.string(), name))
        .hint("choose another name");
  }
}

}  // namespace mxfp4
