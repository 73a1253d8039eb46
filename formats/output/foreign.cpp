#include "formats/output/foreign.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <set>
#include <string>
#include <system_error>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/blob/rest_check.hpp"
#include "formats/output/states.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// The files that the manifests in a directory name, relative to it.
std::set<fs::path> named_files(const fs::path& directory) {
  std::set<fs::path> named;
  for (const fs::path& blob : find_blobs(directory)) {
    std::error_code ignored;
    if (!fs::exists(blob / kManifestName, ignored)) continue;
    const Manifest manifest = read_manifest(blob);
    const fs::path home = blob.lexically_relative(directory).lexically_normal();
    const auto add = [&](const fs::path& file) { named.insert((home / file).lexically_normal()); };
    add(kManifestName);
    add(kIndexName);
    for (const ManifestLayer& layer : manifest.layers) add(layer.file);
    for (const ManifestFile& file : manifest.rest) {
      constexpr int64_t kSmall = int64_t{64} << 20;
      named.insert(file.name);
      const fs::path path = directory / file.name;
      if (file.size > kSmall || !fs::exists(path, ignored)) continue;
      try {
        require_bytes(path, file.size, &file.xxh3_128);
      } catch (const Error&) {
        throw refusal(kKeepsForeign, {directory.string(), {}, file.name});
      }
    }
  }
  return named;
}

}  // namespace

void refuse_foreign(const fs::path& directory) {
  const std::set<fs::path> named = named_files(directory);
  std::error_code error;
  for (fs::recursive_directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    const fs::path file = at->path().lexically_relative(directory);
    const std::string name = file.filename().string();
    const bool folder = !at->is_symlink() && at->is_directory();
    if (folder ? name == kBlobFolder || is_rank_directory(name) : named.contains(file)) continue;
    throw refusal(kKeepsForeign, {directory.string(), {}, file.string()});
  }
  if (!error) return;
  throw Error::output(fmt::format("cannot be listed: {}", error.message()))
      .in_file(directory.string());
}

}  // namespace mxfp4
