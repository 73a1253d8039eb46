#include "formats/blob/blob_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "formats/blob/layout_facts.hpp"
#include "formats/remote/files_at.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// A manifest of 128 ranks x 100 layers stays far below this.
constexpr int64_t kMaxManifestBytes = int64_t{64} << 20;

bool has_manifest(const fs::path& directory) { return exists_at(directory / kManifestName); }

// The name of a directory, also if the path is "." or ends in a slash.
std::string name_of(const fs::path& directory) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(directory, ignored).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

// The keys of facts that differ between two ranks, though ranks of one conversion share them.
std::vector<std::string> differing_keys(const Manifest& first, const Manifest& other) {
  std::vector<std::string> keys;
  const auto one = manifest_to_json(first);
  const auto two = manifest_to_json(other);
  for (const char* key : {"revision", "layout", "target", "deployment", "model"}) {
    if (one.at(key) != two.at(key)) keys.emplace_back(key);
  }
  if (first.checkpoint != other.checkpoint) keys.emplace_back("checkpoint");
  const auto layers = [](const Manifest& manifest) {
    std::vector<std::pair<int64_t, std::string>> all;
    for (const ManifestLayer& layer : manifest.layers) all.emplace_back(layer.index, layer.prefix);
    return all;
  };
  if (layers(first) != layers(other)) keys.emplace_back("layers");
  return keys;
}

// Relaxed: only that no two numbers are equal matters.
uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

// The names in a folder; none if it cannot be listed.
std::vector<std::string> names_if_any(const fs::path& folder) {
  try {
    return names_at(folder);
  } catch (const Error&) {
    return {};
  }
}

// `path` itself, or its rank directories in order.
std::vector<fs::path> blobs_in(const fs::path& path) {
  if (has_manifest(path)) return {path};
  std::vector<fs::path> found;
  for (const std::string& name : names_if_any(path)) {
    // A directory without a manifest counts: the blob is incomplete, and reading it will say so.
    if (is_rank_directory(name)) found.push_back(path / name);
  }
  std::ranges::sort(found);
  return found;
}

// Whether the file is a packed layer, judged by its header.
bool is_packed_layer(const fs::path& path) {
  try {
    return LayerReader(path).header().metadata.contains(kPackedMark);
  } catch (const Error&) {
    return false;  // damaged, or of another kind
  }
}

}  // namespace

std::vector<fs::path> find_blobs(const fs::path& path) {
  std::vector<fs::path> found = blobs_in(path);
  return found.empty() ? blobs_in(path / kBlobFolder) : found;
}

std::optional<Error> part_of_blob(const fs::path& directory) {
  if (has_manifest(directory)) return std::nullopt;
  // A compressed layer is only a blob's; a plain one may be what unpack wrote, which has no index.
  const bool indexed = exists_at(directory / kIndexName);
  for (const std::string& name : names_if_any(directory)) {
    const bool compressed = name.ends_with(".zst");
    if ((!compressed && !indexed) || !is_layer_file_name(name)) continue;
    if (!compressed && !is_packed_layer(directory / name)) continue;
    return Error::input(fmt::format("layer files of a blob, but no {}", kManifestName))
        .in_file(directory.string())
        .hint(
            "is the copy complete? fetch all of the blob's directory, or convert again with "
            "--force");
  }
  return std::nullopt;
}

bool is_rank_directory(std::string_view name) {
  constexpr std::string_view kBegin = "rank-";
  constexpr std::string_view kMiddle = "-of-";
  const auto is_number = [](std::string_view text) {
    return text.size() >= 2 && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const size_t middle = name.find(kMiddle);
  return name.starts_with(kBegin) && middle != std::string_view::npos &&
         is_number(name.substr(kBegin.size(), middle - kBegin.size())) &&
         is_number(name.substr(middle + kMiddle.size()));
}

std::vector<std::string> check_ranks(const std::vector<fs::path>& directories,
                                     const std::vector<Manifest>& manifests) {
  std::vector<std::string> findings;
  for (size_t i = 0; i < manifests.size(); ++i) {
    const RankNumbers& rank = manifests[i].rank;
    const std::string name = name_of(directories[i]);
    if (is_rank_directory(name) && name != rank_directory(rank)) {
      findings.push_back(fmt::format("{}: the manifest is of rank {} of {}",
                                     directories[i].string(), rank.rank, rank.num_ranks));
    }
    for (const std::string& key : differing_keys(manifests.front(), manifests[i])) {
      findings.push_back(fmt::format("{}: {}: not as in {}", directories[i].string(), key,
                                     directories.front().string()));
    }
  }
  return findings;
}

std::vector<Manifest> read_manifests(const std::vector<fs::path>& directories) {
  std::vector<Manifest> manifests;
  manifests.reserve(directories.size());
  for (const fs::path& directory : directories) manifests.push_back(read_manifest(directory));
  return manifests;
}

BlobRanks read_ranks(std::vector<fs::path> directories) {
  std::vector<Manifest> manifests = read_manifests(directories);
  const std::vector<std::string> findings = check_ranks(directories, manifests);
  if (!findings.empty()) throw Error::input(findings.front());
  return {std::move(directories), std::move(manifests)};
}

std::string missing_ranks(const fs::path& path, const std::vector<Manifest>& manifests) {
  if (manifests.empty() || has_manifest(path)) return "";
  const int64_t all = manifests.front().rank.num_ranks;
  std::set<int64_t> here;
  for (const Manifest& manifest : manifests) here.insert(manifest.rank.rank);
  const auto count = static_cast<int64_t>(here.size());
  if (count >= all) return "";
  int64_t first = 0;
  while (here.contains(first)) ++first;
  return fmt::format("{}: {} of {} ranks {} here; rank {} is not", path.string(), count, all,
                     count == 1 ? "is" : "are", first);
}

Manifest read_manifest(const fs::path& directory) {
  const fs::path path = directory / kManifestName;
  return in_file(path.string(), [&] {
    Manifest manifest = parse_manifest(text_at(path, kMaxManifestBytes));
    check_layout_facts(manifest);
    return manifest;
  });
}

LayerReader::LayerReader(const fs::path& path)
    : LayerReader(in_file(path.string(), [&] { return LayerReader(file_at(path)); })) {}

LayerReader::LayerReader(PositionedFile file) : id_(next_id()), file_(std::move(file)) {
  const auto read = [&](int64_t offset, int64_t bytes) {
    UninitializedBytes out(static_cast<size_t>(bytes));
    file_.read(offset, out);
    return out;
  };
  UninitializedBytes front = read(0, std::min(file_.size(), kSafetensorsLengthBytes));
  int64_t decoded = file_.size();
  if (is_zstd(front)) {
    const int64_t footer = std::min(file_.size(), kSeekFooterBytes);
    const int64_t table = seek_table_bytes(read(file_.size() - footer, footer), file_.size());
    entries_ = read_seek_table(read(file_.size() - table, table), file_.size());
    if (entries_.empty()) throw Error::input("the seek table names no frame");
    const SeekEntry& last = entries_.back();
    decoded = last.decoded_offset + last.frame.decoded;
    front.resize(static_cast<size_t>(entries_.front().frame.decoded));
    decode(entries_.front(), front);
  } else {
    uint64_t length = 0;  // of the header: the parser looks at it again
    if (!front.empty()) std::memcpy(&length, front.data(), front.size());
    const uint64_t most = std::min<uint64_t>(length, kMaxSafetensorsHeader);
    front = read(0, std::min(decoded, kSafetensorsLengthBytes + static_cast<int64_t>(most)));
  }
  header_ = parse_safetensors_header(front, decoded);
  if (compressed() && header_.data_start != std::ssize(front)) {
    throw Error::input("the header is not a frame of its own");
  }
  front_.assign(reinterpret_cast<const char*>(front.data()), front.size());
}

void LayerReader::decode(const SeekEntry& entry, MutableBytes out) const {
  thread_local UninitializedBytes encoded;
  encoded.resize(static_cast<size_t>(entry.frame.encoded));
  file_.read(entry.encoded_offset, encoded);
  decode_frame(encoded, entry.frame, out);
}

ConstBytes LayerReader::decoded(size_t frame, DecodedFrame& kept) const {
  if (kept.reader == id_ && kept.frame == frame) return kept.bytes;
  kept.reader = 0;  // until it is whole
  kept.bytes.resize(static_cast<size_t>(entries_[frame].frame.decoded));
  decode(entries_[frame], kept.bytes);
  kept.reader = id_;
  kept.frame = frame;
  return kept.bytes;
}

void LayerReader::read(int64_t offset, MutableBytes out) const {
  DecodedFrame kept;
  read(offset, out, kept);
}

void LayerReader::read(int64_t offset, MutableBytes out, DecodedFrame& kept) const {
  int64_t at = header_.data_start + offset;
  if (!compressed()) return file_.read(at, out);
  auto entry = std::ranges::upper_bound(entries_, at, {}, &SeekEntry::decoded_offset) - 1;
  for (; !out.empty(); ++entry) {
    const auto skip = static_cast<size_t>(at - entry->decoded_offset);
    const auto size = static_cast<size_t>(entry->frame.decoded);
    const size_t take = std::min(size - skip, out.size());
    if (take == size) {
      decode(*entry, out.first(size));
    } else {
      const ConstBytes whole = decoded(static_cast<size_t>(entry - entries_.begin()), kept);
      std::memcpy(out.data(), whole.data() + skip, take);
    }
    out = out.subspan(take);
    at += static_cast<int64_t>(take);
  }
}

}  // namespace mxfp4
