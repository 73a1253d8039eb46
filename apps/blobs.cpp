#include "apps/blobs.hpp"

#include <fmt/format.h>

#include <string>

#include "formats/conversion/unfinished.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

std::vector<std::filesystem::path> require_blobs(const std::filesystem::path& path) {
  refuse_unfinished(path);
  std::vector<std::filesystem::path> blobs = find_blobs(path);
  if (!blobs.empty()) return blobs;
  throw Error::input(
      fmt::format("{}: no {} here, so no complete blob", path.string(), kManifestName));
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
