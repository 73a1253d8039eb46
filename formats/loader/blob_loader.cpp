#include "formats/loader/blob_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/blob/blob_check.hpp"
#include "formats/blob/layout_facts.hpp"
#include "formats/blob/raw_frames.hpp"
#include "formats/loader/arriving_sum.hpp"
#include "formats/os/input_fault.hpp"
#include "formats/remote/files_at.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/run_on_threads.hpp"
#include "lib/layouts/output.hpp"
#include "lib/plan/frames.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kMaxLoadedManifestBytes = int64_t{64} << 20;
// Bytes of a file that a thread sums at a time.
constexpr int64_t kCheckedBytes = int64_t{4} << 20;
// Bytes of a plain file that one direct read gives: about a frame, as `convert` writes them.
constexpr size_t kDirectBytes = size_t{2} << 20;

// Every tensor, which begins at one of `offsets` from `data_start` on, begins a frame, so that each
// can be decoded by itself. The last offset is the data's end.
void check_frames(std::span<const SeekEntry> frames, int64_t data_start,
                  std::span<const int64_t> offsets) {
  for (const int64_t offset : offsets.first(offsets.size() - 1)) {
    if (offset == offsets.back()) break;  // tensors without bytes
    const auto frame =
        std::ranges::lower_bound(frames, data_start + offset, {}, &SeekEntry::decoded_offset);
    if (frame == frames.end() || frame->decoded_offset != data_start + offset) {
      throw Error::input("a tensor does not begin a frame");
    }
  }
}

// Fills `out` by fill(offset in `out`, part) in parts that are still in the caches when they are
// summed.
template <class Fill>
void fill_summed(MutableBytes out, ChecksumPart* sum, const Fill& fill) {
  for (size_t at = 0; at < out.size(); at += kHashPiece) {
    const auto part = out.subspan(at, std::min(kHashPiece, out.size() - at));
    fill(at, part);
    if (sum != nullptr) sum->update(part);
  }
}

ConstBytes read_direct(const PositionedFile& file, int64_t offset, int64_t bytes, Buffer& memory) {
  return file.read_direct(offset, bytes, memory.get(file.direct_room(bytes)));
}

void read_plain(const PositionedFile& file, int64_t offset, MutableBytes out, Buffer& memory,
                ChecksumPart* sum) {
  if (file.is_direct()) {
    for (size_t at = 0; at < out.size(); at += kDirectBytes) {
      const auto part = out.subspan(at, std::min(kDirectBytes, out.size() - at));
      const ConstBytes from = read_direct(file, offset + static_cast<int64_t>(at),
                                          static_cast<int64_t>(part.size()), memory);
      fill_summed(part, sum, [&](size_t skip, MutableBytes to) {
        std::memcpy(to.data(), from.data() + skip, to.size());
      });
    }
  } else if (sum == nullptr) {
    file.read(offset, out);
  } else {
    fill_summed(out, sum, [&](size_t skip, MutableBytes to) {
      file.read(offset + static_cast<int64_t>(skip), to);
    });
  }
}

}  // namespace

BlobLoader::BlobLoader(const std::filesystem::path& directory, bool direct, bool lazy)
    : directory_(directory),
      start_(is_address(directory) ? std::filesystem::path() : current_directory()),
      direct_(direct),
      reads_ahead_(reads_ahead_at(start_ / directory)) {
  const auto far = keep_far_files();  // as long as no layer file is open
  const std::filesystem::path path = directory / kManifestName;
  in_context(path.string(), [&] {
    manifest_text_ = text_at(path, kMaxLoadedManifestBytes);
    manifest_ = parse_manifest(manifest_text_);
    // Every reader knows the loaded layout. A packed one may be a newer program's.
    if (manifest_.layout == kLoadedLayoutId) check_layout_facts(manifest_);
  });
  for (size_t i = 0; i < manifest_.layers.size(); ++i) {
    layers_.push_back(std::make_unique<LayerSlot>());
    if (!lazy) opened(i);
  }
}

const BlobLoader::Layer& BlobLoader::opened(size_t layer) const {
  LayerSlot& slot = *layers_[layer];
  std::call_once(slot.once, [&] {
    const ManifestLayer& stated = manifest_.layers[layer];
    in_context((directory_ / stated.file).string(), [&] { slot.layer = open_layer(stated); });
    if (direct_) slot.layer->reader.file().make_direct();
  });
  return *slot.layer;
}

BlobLoader::Layer BlobLoader::open_layer(const ManifestLayer& stated) const {
  const std::filesystem::path path = directory_ / stated.file;
  PositionedFile file = file_at(start_ / path);
  if (file.size() != stated.size) {
    throw InputFault(Fault::kSize,
                     fmt::format("{} bytes, {} in the manifest", file.size(), stated.size));
  }
  Layer layer{.path = path, .reader = LayerReader(std::move(file))};
  require_description(layer.reader, manifest_, stated);
  const SafetensorsHeader& header = layer.reader.header();
  for (const SafetensorsTensor& tensor : header.tensors) layer.offsets.push_back(tensor.begin);
  layer.offsets.push_back(header.tensors.empty() ? 0 : header.tensors.back().end);
  if (layer.reader.compressed()) check_frames(layer.frames(), layer.data_start(), layer.offsets);
  return layer;
}

void BlobLoader::check_verifiable(const LoadRequest& request) const {
  if (has_checksum(request) || manifest_.compression.zstd) return;
  throw Error::usage(fmt::format("{}: a part of a tensor in a plain file has no checksum to verify",
                                 place(request.layer, request.tensor)));
}

std::string BlobLoader::place(size_t layer, size_t tensor) const {
  return fmt::format("{}: {}", (directory_ / manifest_.layers[layer].file).string(),
                     manifest_.layers[layer].tensors[tensor].name);
}

int64_t BlobLoader::best_piece(size_t layer, size_t tensor) const {
  // A frame that convert makes fits into a piece, so it is decoded once.
  return cuts_anywhere(layer, tensor) ? kPlainPiece : kFrameBytes;
}

bool BlobLoader::cuts_anywhere(size_t layer, size_t /*tensor*/) const {
  return opened(layer).frames().empty();
}

std::vector<LoadPiece> BlobLoader::pieces(size_t layer, size_t tensor, int64_t begin, int64_t bytes,
                                          int64_t limit) const {
  if (cuts_anywhere(layer, tensor)) return cut_granules(tensor, begin, bytes, limit, 1);
  const Layer& in = opened(layer);
  int64_t at = in.data_start() + in.offsets[tensor] + begin;  // in the decoded file
  auto frame = std::ranges::upper_bound(in.frames(), at, {}, &SeekEntry::decoded_offset) - 1;
  std::vector<LoadPiece> pieces;
  for (const int64_t end = at + bytes; at < end; at += pieces.back().bytes) {
    if (frame->decoded_offset + frame->frame.decoded <= at) ++frame;
    const int64_t frame_end = frame->decoded_offset + frame->frame.decoded;
    pieces.push_back({.tensor = tensor,
                      .begin = begin + at - (end - bytes),
                      .bytes = std::min({end - at, limit, frame_end - at}),
                      .frame = &*frame,
                      .in_frame = static_cast<size_t>(at - frame->decoded_offset)});
  }
  return pieces;
}

void BlobLoader::expect_part(size_t layer, size_t tensor, int64_t begin, int64_t bytes) const {
  if (bytes == 0) return;
  const Layer& in = opened(layer);
  const std::vector<LoadPiece> parts = pieces(layer, tensor, begin, bytes, bytes);
  int64_t first = in.data_start() + in.offsets[tensor] + begin;
  int64_t end = first + bytes;
  if (const SeekEntry* frame = parts.front().frame) {
    const SeekEntry& last = *parts.back().frame;
    first = frame->encoded_offset;
    end = last.encoded_offset + last.frame.encoded;
  }
  expect_at(start_ / in.path, first, end - first);
}

void BlobLoader::read_piece(size_t layer, const LoadPiece& piece, MutableBytes out,
                            LoadBuffers& buffers, FrameCheck check, ChecksumPart* sum) const {
  const Layer& in = opened(layer);
  if (piece.frame != nullptr) return read_frame(in.file(), piece, out, buffers, check, sum);
  const int64_t offset = in.data_start() + in.offsets[piece.tensor] + piece.begin;
  read_plain(in.file(), offset, out, buffers.direct, sum);
}

void BlobLoader::read_frame(const PositionedFile& file, const LoadPiece& piece, MutableBytes out,
                            LoadBuffers& buffers, FrameCheck check, ChecksumPart* sum) {
  const FrameInfo& frame = piece.frame->frame;
  const int64_t offset = piece.frame->encoded_offset;
  const bool whole = piece.bytes == frame.decoded;
  ConstBytes encoded;
  if (file.is_direct()) {
    encoded = read_direct(file, offset, frame.encoded, buffers.direct);
    if (whole && copy_raw_frame(encoded, frame, out, check, sum)) return;
  } else {
    if (whole && read_straight(file, *piece.frame, out, check, sum)) return;
    buffers.encoded.resize(static_cast<size_t>(frame.encoded));
    file.read(offset, buffers.encoded);
    encoded = buffers.encoded;
  }
  if (whole) {
    decode_frame(encoded, frame, out, check);
  } else {
    buffers.decoded.resize(static_cast<size_t>(frame.decoded));
    decode_frame(encoded, frame, buffers.decoded, check);
    std::memcpy(out.data(), buffers.decoded.data() + piece.in_frame, out.size());
  }
  if (sum == nullptr) return;
  sum->begin(piece.begin);
  sum->update(out);
}

// Reads a frame that is wanted whole and needs no decoding. False for any other.
bool BlobLoader::read_straight(const PositionedFile& file, const SeekEntry& entry, MutableBytes out,
                               FrameCheck check, ChecksumPart* sum) {
  return read_raw_frame(entry.frame, out, check, sum,
                        [&](int64_t offset, std::span<const MutableBytes> parts) {
                          file.read(entry.encoded_offset + offset, parts);
                        });
}

void BlobLoader::check_file(size_t layer, const LoadOptions& options) const {
  const Layer& in = opened(layer);
  ArrivingSum sum;
  const auto read_part = [&](size_t number, LoadBuffers& buffers) {
    throw_if_cancelled(options.cancel);
    const int64_t begin = static_cast<int64_t>(number) * kCheckedBytes;
    buffers.decoded.resize(static_cast<size_t>(std::min(kCheckedBytes, in.file().size() - begin)));
    ChecksumPart part;
    part.begin(begin);
    read_plain(in.file(), begin, buffers.decoded, buffers.direct, &part);
    sum.add(number, std::move(part));
  };
  in_context(in.path.string(), [&] {
    const int64_t parts = (in.file().size() + kCheckedBytes - 1) / kCheckedBytes;
    run_on_threads<LoadBuffers>(options.threads, static_cast<size_t>(parts), read_part);
    if (sum.hex() != manifest_.layers[layer].xxh3_128) {
      throw InputFault(Fault::kChecksum, "checksum of the file differs");
    }
  });
}

}  // namespace mxfp4
