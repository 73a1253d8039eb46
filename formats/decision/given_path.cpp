#include "formats/decision/given_path.hpp"

#include <fmt/format.h>

#include <set>
#include <string>
#include <system_error>

#include "formats/checkpoint/hub_cache.hpp"
#include "formats/checkpoint/safetensors_source.hpp"
#include "formats/decision/opened_checkpoint.hpp"
#include "formats/decision/unfinished.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// Whether the file has the name of an archive.
bool is_archive(const fs::path& path) {
  static const std::set<std::string> kSuffixes = {".tar", ".tgz", ".txz", ".zip",
                                                  ".gz",  ".xz",  ".bz2", ".7z"};
  return kSuffixes.contains(path.extension().string()) || path.stem().extension() == ".tar";
}

// The error for a path that is not a blob, with what it seems to be instead.
Error no_blob(const fs::path& path) {
  std::error_code ignored;
  const std::string name = path.string();
  if (!fs::exists(path, ignored)) {
    return Error::input("cannot be opened: No such file or directory").in_file(name);
  }
  if (!fs::is_directory(path, ignored)) {
    Error error = Error::input("not a directory; a blob is one").in_file(name);
    const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (!find_blobs(parent).empty()) error.hint(fmt::format("give {}", parent.string()));
    if (is_archive(path)) error.hint("an archive? unpack it, then give the blob's directory");
    return error;
  }
  std::error_code unseen;
  if (!fs::exists(path / kManifestName, unseen) && unseen) {
    return Error::input(fmt::format("cannot be opened: {}", unseen.message()))
        .in_file((path / kManifestName).string());
  }
  if (const auto part = part_of_blob(path)) return *part;
  Error error =
      Error::input(fmt::format("no {} here, so no complete blob", kManifestName)).in_file(name);
  // A checkpoint, or what unpack wrote of a blob.
  if (fs::exists(path / kConfigName, ignored) || holds_safetensors(path)) {
    error.hint("a checkpoint? mxfp4-repack convert makes a blob of it");
  }
  return error;
}

// The number of the layer that lies in `file`, by the manifest in `directory`; empty if none does.
std::optional<int64_t> layer_of(const fs::path& directory, const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(directory / kManifestName, ignored)) return std::nullopt;
  for (const ManifestLayer& layer : read_manifest(directory).layers) {
    if (layer.file == file.filename()) return layer.index;
  }
  return std::nullopt;
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

BlobRanks open_blob_ranks(const fs::path& path) {
  BlobRanks blob;
  blob.directories = require_blobs(path);
  blob.manifests = read_manifests(blob.directories);
  const std::vector<std::string> findings = check_ranks(blob.directories, blob.manifests);
  if (!findings.empty()) throw Error::input(findings.front());
  return blob;
}

fs::path whole_of(const fs::path& path, std::optional<int64_t>& layer) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return hub_snapshot(path);
  if (!fs::is_regular_file(path, ignored)) return path;
  fs::path directory = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path name = path.filename();
  const bool of_blob = name == kIndexName && fs::exists(directory / kManifestName, ignored);
  if (name == kConfigName || name == kManifestName || of_blob || is_listed_file(path)) {
    return directory;
  }
  const std::optional<int64_t> number = layer_of(directory, name);
  if (!number) return path;
  if (layer && layer != number) {
    throw Error::usage(fmt::format("--layer {} contradicts {}, the file of layer {}", *layer,
                                   path.string(), *number))
        .hint(fmt::format("--layer chooses one in {}", directory.string()));
  }
  layer = number;
  return directory;
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
