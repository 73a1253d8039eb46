#include "apps/blobs.hpp"

#include <fmt/format.h>

#include <string>
#include <system_error>

#include "formats/blob/model_card.hpp"
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

void add_model_card(const std::filesystem::path& path, const Console& console) {
  const std::vector<std::filesystem::path> blobs = require_blobs(path);
  const std::filesystem::path card = write_model_card(blobs, read_manifests(blobs));
  console.say(fmt::format("{}: model card; to upload: hf upload OWNER/NAME {}",
                          shell_word(card.string()), shell_word(path.string())));
}

}  // namespace mxfp4
