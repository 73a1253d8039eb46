#include "formats/blob/blob_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <span>

#include "formats/blob/blob_writer.hpp"
#include "formats/blob/gather.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/os/mapped_file.hpp"
#include "formats/os/uninitialized_bytes.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/job_pipeline.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// Bytes that a worker checks at a time.
constexpr int64_t kPieceBytes = int64_t{4} << 20;

// Some consecutive bytes of one tensor, and how they are stored.
struct StoredPiece {
  size_t layer = 0;  // index into the manifest's layers
  size_t tensor = 0;
  int64_t in_tensor = 0;   // position of the first byte
  int64_t bytes = 0;       // decoded
  int64_t offset = 0;      // in the file
  int64_t stored = 0;      // bytes there
  size_t first_frame = 0;  // of a compressed file
  size_t frames = 0;
};

// One layer file that is being checked.
struct OpenLayer {
  fs::path from_device;  // empty: the map serves
  std::unique_ptr<LayerReader> reader;
  Checksum file_sum;
  std::vector<Checksum> tensor_sums;
  size_t pieces_left = 0;
  std::vector<std::string> findings;
};

// The checksums of a piece.
struct PieceSums {
  ChecksumPart file_part;
  ChecksumPart tensor_part;
  bool shared = false;  // file_part serves the tensor too
  std::string damage;
  UninitializedBytes decoded;
  UninitializedBytes from_device;
};

// The pieces of a plain file.
std::vector<StoredPiece> cut_plain(const ManifestLayer& layer, const LayerReader& reader,
                                   size_t index) {
  std::vector<StoredPiece> pieces;
  int64_t offset = reader.header().data_start;
  for (size_t t = 0; t < layer.tensors.size(); ++t) {
    const int64_t bytes = layer.tensors[t].spec.bytes();
    for (int64_t at = 0; at < bytes; at += kPieceBytes) {
      const int64_t size = std::min(kPieceBytes, bytes - at);
      pieces.push_back({.layer = index,
                        .tensor = t,
                        .in_tensor = at,
                        .bytes = size,
                        .offset = offset + at,
                        .stored = size});
    }
    offset += bytes;
  }
  return pieces;
}

// The pieces of a compressed file: some frames of one tensor each. Frames begin at tensor starts.
std::vector<StoredPiece> cut_frames(const ManifestLayer& layer, const LayerReader& reader,
                                    size_t index) {
  std::vector<StoredPiece> pieces;
  const std::vector<SeekEntry>& frames = reader.frames();
  size_t next = 1;  // the first is the header
  for (size_t t = 0; t < layer.tensors.size(); ++t) {
    const int64_t bytes = layer.tensors[t].spec.bytes();
    for (int64_t at = 0; at < bytes;) {
      StoredPiece piece{.layer = index, .tensor = t, .in_tensor = at, .first_frame = next};
      while (piece.bytes < kPieceBytes && at < bytes) {
        if (next == frames.size() || frames[next].frame.decoded > bytes - at) {
          throw Error::input(
              fmt::format("{}: its frames do not end where it does", layer.tensors[t].name));
        }
        const FrameInfo& frame = frames[next++].frame;
        piece.bytes += frame.decoded;
        piece.stored += frame.encoded;
        ++piece.frames;
        at += frame.decoded;
      }
      piece.offset = frames[piece.first_frame].encoded_offset;
      pieces.push_back(piece);
    }
  }
  if (next != frames.size()) throw Error::input("more frames than the manifest's tensors fill");
  return pieces;
}

void sum_plain(ConstBytes stored, const StoredPiece& piece, PieceSums& sums) {
  sums.shared = (piece.offset - piece.in_tensor) % ChecksumPart::kPeriod == 0;
  while (!stored.empty()) {
    const ConstBytes part = stored.first(std::min(stored.size(), kHashPiece));
    sums.file_part.update(part);
    if (!sums.shared) sums.tensor_part.update(part);
    stored = stored.subspan(part.size());
  }
}

void sum_frames(ConstBytes stored, std::span<const SeekEntry> frames, PieceSums& sums) {
  sums.shared = false;
  for (const SeekEntry& entry : frames) {
    const ConstBytes encoded = stored.first(static_cast<size_t>(entry.frame.encoded));
    sums.file_part.update(encoded);
    sums.decoded.resize(static_cast<size_t>(entry.frame.decoded));
    decode_frame(encoded, entry.frame, sums.decoded);
    sums.tensor_part.update(sums.decoded);
    stored = stored.subspan(encoded.size());
  }
}

// Bytes of a layer file, in its map or in `memory`. A file that is read past the page cache is
// opened each time: a blob may have more files than a process may open.
ConstBytes stored_bytes_of(const OpenLayer& layer, int64_t offset, int64_t bytes,
                           UninitializedBytes& memory) {
  if (layer.from_device.empty()) {
    return layer.reader->stored().subspan(static_cast<size_t>(offset), static_cast<size_t>(bytes));
  }
  PositionedFile file(layer.from_device);
  file.make_direct();
  memory.resize(std::max(memory.size(), static_cast<size_t>(file.direct_room(bytes))));
  return file.read_direct(offset, bytes, memory);
}

void sum_piece(const OpenLayer& layer, const StoredPiece& piece, PieceSums& sums) {
  const LayerReader& reader = *layer.reader;
  sums.damage.clear();
  sums.file_part.begin(piece.offset);
  sums.tensor_part.begin(piece.in_tensor);
  try {
    const ConstBytes stored = stored_bytes_of(layer, piece.offset, piece.stored, sums.from_device);
    if (reader.compressed()) {
      sum_frames(stored, std::span(reader.frames()).subspan(piece.first_frame, piece.frames), sums);
    } else {
      sum_plain(stored, piece, sums);
    }
    if (layer.from_device.empty()) release_pages(stored);
  } catch (const Error& error) {
    if (error.is_unreadable()) throw Error(error).in_file(layer.from_device.string());
    sums.damage = error.what();
  }
}

// Whether the file's header is exactly `expected`.
bool is_written_header(const LayerReader& reader, std::string_view expected) {
  if (reader.header().data_start != static_cast<int64_t>(expected.size())) return false;
  UninitializedBytes found(expected.size());
  reader.read(-reader.header().data_start, found);
  return std::ranges::equal(found, std::as_bytes(std::span(expected)));
}

void compare_header(const LayerReader& reader, const Manifest& manifest, const ManifestLayer& layer,
                    std::vector<std::string>& findings) {
  const SafetensorsHeader& header = reader.header();
  std::map<std::string, TensorSpec> in_file;
  for (const SafetensorsTensor& tensor : header.tensors) in_file[tensor.name] = tensor.spec;
  for (const ManifestTensor& tensor : layer.tensors) {
    const auto found = in_file.find(tensor.name);
    if (found == in_file.end()) {
      findings.push_back(fmt::format("{}: missing in the file", tensor.name));
    } else if (found->second != tensor.spec) {
      findings.push_back(fmt::format("{}: {} {} in the file, {} {} in the manifest", tensor.name,
                                     dtype_name(found->second.dtype),
                                     found->second.shape.to_string(), dtype_name(tensor.spec.dtype),
                                     tensor.spec.shape.to_string()));
    }
    in_file.erase(tensor.name);
  }
  for (const auto& [name, spec] : in_file) {
    findings.push_back(fmt::format("{}: not in the manifest", name));
  }
  if (header.metadata != layer_metadata(manifest, layer)) {
    findings.emplace_back("__metadata__ differs from the manifest");
  }
  if (findings.empty() && !is_written_header(reader, layer_header(manifest, layer))) {
    findings.emplace_back("the header is not in the form that this program writes");
  }
}

std::vector<std::string> compare_description(const LayerReader& reader, const Manifest& manifest,
                                             const ManifestLayer& layer) {
  std::vector<std::string> findings;
  if (reader.file_bytes() != layer.size) {
    findings.push_back(
        fmt::format("{} bytes, {} in the manifest", reader.file_bytes(), layer.size));
  }
  if (reader.compressed() != manifest.compression.zstd) {
    findings.push_back(fmt::format("is {}compressed, but the manifest says otherwise",
                                   reader.compressed() ? "" : "not "));
  }
  compare_header(reader, manifest, layer, findings);
  return findings;
}

// Opens a layer file and lists its pieces. A file whose description differs is not read: no pieces.
void open_layer(const fs::path& path, const Manifest& manifest, size_t index, ReadFrom from,
                OpenLayer& layer, std::vector<StoredPiece>& pieces) {
  const ManifestLayer& stated = manifest.layers[index];
  if (from == ReadFrom::kDevice) {
    in_context(path.string(), [&] { (void)open_past_cache(path); });  // before it is mapped
    layer.from_device = path;
  }
  auto reader = std::make_unique<LayerReader>(path);
  layer.findings = compare_description(*reader, manifest, stated);
  if (!layer.findings.empty()) return;
  const std::vector<StoredPiece> cut = in_file(path.string(), [&] {
    return (reader->compressed() ? cut_frames : cut_plain)(stated, *reader, index);
  });
  const int64_t header =
      reader->compressed() ? reader->frames().front().frame.encoded : reader->header().data_start;
  layer.reader = std::move(reader);
  UninitializedBytes memory;
  in_context(path.string(),
             [&] { layer.file_sum.update(stored_bytes_of(layer, 0, header, memory)); });
  layer.tensor_sums.resize(stated.tensors.size());
  layer.pieces_left = cut.size();
  pieces.insert(pieces.end(), cut.begin(), cut.end());
}

// Adds the sums of a layer's next piece.
void add_piece(const StoredPiece& piece, const PieceSums& sums, OpenLayer& layer) {
  if (!sums.damage.empty()) {
    if (layer.findings.empty()) layer.findings.push_back(sums.damage);
  } else if (layer.findings.empty()) {
    layer.file_sum.append(sums.file_part);
    layer.tensor_sums[piece.tensor].append(sums.shared ? sums.file_part : sums.tensor_part);
  }
  --layer.pieces_left;
}

// Compares the sums with the manifest, after all pieces were added.
void compare_sums(const ManifestLayer& stated, OpenLayer& layer) {
  if (!layer.findings.empty()) return;
  UninitializedBytes memory;
  const int64_t summed = layer.file_sum.size();
  layer.file_sum.update(
      stored_bytes_of(layer, summed, layer.reader->file_bytes() - summed, memory));
  for (size_t i = 0; i < stated.tensors.size(); ++i) {
    if (layer.tensor_sums[i].hex() != stated.tensors[i].xxh3_128) {
      layer.findings.push_back(fmt::format("{}: checksum differs", stated.tensors[i].name));
    }
  }
  if (layer.file_sum.hex() != stated.xxh3_128 && layer.findings.empty()) {
    layer.findings.emplace_back("checksum of the file differs");
  }
}

}  // namespace

void require_layer_file(const LayerReader& reader, const Manifest& manifest,
                        const ManifestLayer& layer) {
  const std::vector<std::string> findings = compare_description(reader, manifest, layer);
  if (!findings.empty()) throw Error::input(findings.front());
  if (checksum_of_mapped(reader.stored()) != layer.xxh3_128) {
    throw Error::input("checksum of the file differs");
  }
}

std::vector<std::string> check_layer_sizes(const fs::path& directory, const Manifest& manifest) {
  std::vector<std::string> findings;
  for (const ManifestLayer& layer : manifest.layers) {
    const fs::path path = directory / layer.file;
    std::error_code error;
    const auto size = static_cast<int64_t>(fs::file_size(path, error));
    if (error) {
      findings.push_back(
          fmt::format("{}: {}", path.string(),
                      error == std::errc::no_such_file_or_directory ? "missing" : error.message()));
    } else if (size != layer.size) {
      findings.push_back(
          fmt::format("{}: {} bytes, {} in the manifest", path.string(), size, layer.size));
    }
  }
  return findings;
}

std::vector<std::string> check_layer_headers(const fs::path& directory, const Manifest& manifest) {
  std::vector<std::string> findings;
  for (const ManifestLayer& layer : manifest.layers) {
    const fs::path path = directory / layer.file;
    gather(findings, [&] {
      for (const std::string& text : compare_description(LayerReader(path), manifest, layer)) {
        findings.push_back(fmt::format("{}: {}", path.string(), text));
      }
    });
  }
  return findings;
}

std::vector<std::string> check_layer_files(const fs::path& directory, const Manifest& manifest,
                                           int threads,
                                           const std::function<void(int64_t)>& progress,
                                           ReadFrom from) {
  std::vector<std::string> findings;
  std::vector<OpenLayer> layers(manifest.layers.size());
  std::vector<StoredPiece> pieces;
  for (size_t i = 0; i < layers.size(); ++i) {
    gather(findings, [&] {
      open_layer(directory / manifest.layers[i].file, manifest, i, from, layers[i], pieces);
    });
  }
  run_jobs<StoredPiece, PieceSums>(
      pieces, {threads, threads + 1},
      {.work = [&](const StoredPiece& piece,
                   PieceSums& sums) { sum_piece(layers[piece.layer], piece, sums); },
       .finish =
           [&](const StoredPiece& piece, PieceSums& sums) {
             OpenLayer& layer = layers[piece.layer];
             add_piece(piece, sums, layer);
             progress(piece.stored);
             if (layer.pieces_left > 0) return;
             compare_sums(manifest.layers[piece.layer], layer);
             layer.reader.reset();
           }});
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].reader) compare_sums(manifest.layers[i], layers[i]);  // a file without data
    const std::string path = (directory / manifest.layers[i].file).string();
    for (const std::string& finding : layers[i].findings) {
      findings.push_back(fmt::format("{}: {}", path, finding));
    }
  }
  return findings;
}

}  // namespace mxfp4
