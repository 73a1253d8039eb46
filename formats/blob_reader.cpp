#include "formats/blob_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "formats/uncleared.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// A manifest of 128 ranks x 100 layers stays far below this.
constexpr int64_t kMaxManifestBytes = int64_t{256} << 20;

bool has_manifest(const fs::path& directory) {
  std::error_code ignored;
  return fs::exists(directory / kManifestName, ignored);
}

// `path` itself, or its rank directories in order.
std::vector<fs::path> blobs_in(const fs::path& path) {
  if (has_manifest(path)) return {path};
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored)) {
    // Also one without a manifest: it is incomplete, and reading it will say so.
    const std::string name = entry.path().filename().string();
    if (name.starts_with("rank-") && name.find("-of-") != std::string::npos) {
      found.push_back(entry.path());
    }
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

std::vector<fs::path> find_blobs(const fs::path& path) {
  std::vector<fs::path> found = blobs_in(path);
  return found.empty() ? blobs_in(path / kBlobFolder) : found;
}

Manifest read_manifest(const fs::path& directory) {
  const fs::path path = directory / kManifestName;
  return in_context(path.string(),
                    [&] { return parse_manifest(read_text_file(path, kMaxManifestBytes)); });
}

LayerReader::LayerReader(const fs::path& path)
    : map_(in_context(path.string(), [&] { return MappedFile(path); })) {
  in_context(path.string(), [&] {
    const ConstBytes file = map_.bytes();
    if (!is_zstd(file)) {
      header_ = parse_safetensors_header(file, file_bytes());
      return;
    }
    entries_ = read_seek_table(file);
    if (entries_.empty()) throw Error::input("the seek table names no frame");
    const SeekEntry& first = entries_.front();
    const SeekEntry& last = entries_.back();
    UnclearedBytes front(static_cast<size_t>(first.frame.decoded));
    decode_frame(file.first(static_cast<size_t>(first.frame.encoded)), first.frame, front);
    header_ = parse_safetensors_header(front, last.decoded_offset + last.frame.decoded);
    if (header_.data_start != first.frame.decoded) {
      throw Error::input("the header is not a frame of its own");
    }
  });
}

void LayerReader::read(int64_t offset, MutableBytes out) const {
  const ConstBytes file = map_.bytes();
  int64_t at = header_.data_start + offset;
  if (!compressed()) {
    const ConstBytes stored = file.subspan(static_cast<size_t>(at), out.size());
    std::ranges::copy(stored, out.begin());
    release_pages(stored);
    return;
  }
  auto entry = std::ranges::upper_bound(entries_, at, {}, &SeekEntry::decoded_offset) - 1;
  UnclearedBytes partial;
  for (; !out.empty(); ++entry) {
    const ConstBytes encoded = file.subspan(static_cast<size_t>(entry->encoded_offset),
                                            static_cast<size_t>(entry->frame.encoded));
    const auto skip = static_cast<size_t>(at - entry->decoded_offset);
    const auto size = static_cast<size_t>(entry->frame.decoded);
    const size_t take = std::min(size - skip, out.size());
    if (take == size) {
      decode_frame(encoded, entry->frame, out.first(size));
    } else {
      partial.resize(size);
      decode_frame(encoded, entry->frame, partial);
      std::memcpy(out.data(), partial.data() + skip, take);
    }
    release_pages(encoded);
    out = out.subspan(take);
    at += static_cast<int64_t>(take);
  }
}

}  // namespace mxfp4
