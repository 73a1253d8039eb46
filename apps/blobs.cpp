#include "apps/blobs.hpp"

#include <fmt/format.h>

#include <string>
#include <system_error>

#include "formats/conversion/unfinished.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// What `path` is instead, where that can be told.
Error no_blob(const fs::path& path) {
  std::error_code ignored;
  const std::string name = path.string();
  if (!fs::exists(path, ignored)) {
    return Error::input(fmt::format("{}: cannot be opened: No such file or directory", name));
  }
  if (!fs::is_directory(path, ignored)) {
    Error error = Error::input(fmt::format("{}: not a directory; a blob is one", name));
    const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (!find_blobs(parent).empty()) error.hint(fmt::format("give {}", parent.string()));
    return error;
  }
  Error error =
      Error::input(fmt::format("{}: no {} here, so no complete blob", name, kManifestName));
  if (fs::exists(path / "config.json", ignored)) {
    error.hint("a checkpoint? mxfp4-repack convert makes a blob of it");
  }
  return error;
}

}  // namespace

std::vector<std::filesystem::path> require_blobs(const std::filesystem::path& path) {
  refuse_unfinished(path);
  std::vector<std::filesystem::path> blobs = find_blobs(path);
  if (!blobs.empty()) return blobs;
  throw no_blob(path);
}

std::vector<Manifest> read_manifests(const std::vector<std::filesystem::path>& blobs) {
  std::vector<Manifest> manifests;
  manifests.reserve(blobs.size());
  for (const std::filesystem::path& blob : blobs) manifests.push_back(read_manifest(blob));
  return manifests;
}

void warn_of_missing_ranks(const std::filesystem::path& path,
                           const std::vector<Manifest>& manifests, const Console& console) {
  const std::string missing = missing_ranks(path, manifests);
  if (!missing.empty()) console.warn(missing);
}

}  // namespace mxfp4
