#include "formats/checkpoint/open_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/seekable_zstd.hpp"
#include "formats/checkpoint/blob_source.hpp"
#include "formats/checkpoint/other_files.hpp"
#include "formats/checkpoint/raw_source.hpp"
#include "formats/checkpoint/safetensors_source.hpp"
#include "formats/hdf5/hdf5_source.hpp"
#include "formats/os/positioned_file.hpp"
#include "formats/remote/files_at.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRawManifest = "manifest.json";

// Whether the experts of `dir` are those of a blob: of its own, or of the one in its folder, around
// which lies the rest of the model. A blob that somebody put into a checkpoint stands for nothing
// there: it may be of another one.
bool is_blob(const fs::path& dir) {
  const std::vector<fs::path> ranks = find_blobs(dir);
  const auto finished = std::ranges::find_if(
      ranks, [](const fs::path& blob) { return exists_at(blob / kManifestName); });
  if (finished == ranks.end()) return false;
  const bool inside = *finished->lexically_relative(dir).begin() == kBlobFolder;
  return !inside || !holds_safetensors(dir) || !read_manifest(*finished).rest.empty();
}

// The checkpoint that the blob at `dir` was made from, unless its layout loses something.
std::unique_ptr<Source> open_blob(const fs::path& dir) {
  BlobSource blob = open_blob_source(dir);
  if (blob.exact) return std::move(blob.source);
  throw Error::unsupported(
      fmt::format("the blob does not have all of its checkpoint: {}", blob.lost.front()))
      .in_file(dir.string())
      .hint("convert the checkpoint that it was made from");
}

std::unique_ptr<Source> open_directory(const fs::path& dir) {
  if (is_blob(dir)) return open_blob(dir);
  if (const auto part = part_of_blob(dir)) throw Error(*part);
  const fs::path manifest = dir / kRawManifest;
  const bool safetensors = holds_safetensors(dir);
  if (exists_at(manifest) && (!safetensors || is_raw_manifest(manifest))) return open_raw(manifest);
  if (safetensors) return open_safetensors(dir);
  throw Error::input(fmt::format("no checkpoint here: looked for *.safetensors, "
                                 "model.safetensors.index.json and a raw dump's {}",
                                 kRawManifest))
      .in_file(dir.string())
      .hint("an HDF5 checkpoint is given by its file");
}

bool begins_with(ConstBytes bytes, std::string_view text) {
  return bytes.size() >= text.size() &&
         std::ranges::equal(bytes.first(text.size()), text, {}, {},
                            [](char c) { return static_cast<std::byte>(c); });
}

constexpr std::string_view kHdf5Signature{"\x89HDF\r\n\x1a\n", 8};

// Whether an HDF5 signature follows a user block, of 512 bytes or a power of two times that.
bool has_user_block(const PositionedFile& file) {
  std::array<std::byte, kHdf5Signature.size()> bytes{};
  for (int64_t at = 512; at <= file.size() - std::ssize(bytes); at *= 2) {
    file.read(at, bytes);
    if (begins_with(bytes, kHdf5Signature)) return true;
  }
  return false;
}

std::unique_ptr<Source> open_file(const fs::path& path) {
  const auto [bytes, user_block] = in_file(path.string(), [&] {
    const PositionedFile file(path);
    std::vector<std::byte> front(static_cast<size_t>(std::min(file.size(), kTellingBytes)));
    file.read(0, front);
    return std::pair(front, has_user_block(file));
  });
  if (begins_with(bytes, kHdf5Signature)) return open_hdf5(path);
  if (begins_as_safetensors(bytes)) return open_safetensors(path);
  if (user_block) return open_hdf5(path);
  if (bytes.empty()) throw Error::input("the file is empty").in_file(path.string());
  if (path.filename() == kRawManifest || is_raw_manifest(path)) return open_raw(path);
  if (is_zstd(bytes)) {
    throw Error::input("compressed with zstd, expected a checkpoint")
        .in_file(path.string())
        .hint("a blob's layer file? convert takes a blob by its directory");
  }
  refuse_pointer(path, bytes);
  throw Error::input(
      "unknown content: looked for an HDF5 signature, a safetensors "
      "header and a raw dump's manifest")
      .in_file(path.string());
}

}  // namespace

std::unique_ptr<Source> open_source(const fs::path& path) {
  if (is_folder_at(path)) return open_directory(path);
  refuse_hub_name(path);
  return open_file(path);
}

std::optional<Manifest> blob_at(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error) || !is_blob(path)) return std::nullopt;
  return read_manifest(find_blobs(path).front());
}

}  // namespace mxfp4
