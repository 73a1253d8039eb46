#include "formats/loader/blob_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "formats/blob/raw_frames.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/os/file.hpp"
#include "formats/os/uninitialized_bytes.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kMaxManifestBytes = int64_t{64} << 20;
// What a thread takes of a plain file at a time, and what it reads of that before it sums it.
constexpr int64_t kPieceBytes = int64_t{4} << 20;
constexpr size_t kHashPiece = size_t{256} << 10;

// What one thread needs besides the caller's memory.
struct Buffers {
  UninitializedBytes encoded;
  UninitializedBytes decoded;
};

// Calls body(job, buffers) for jobs 0 .. count - 1, in this order, on some threads, this one
// included. The first exception ends all.
template <class Body>
void run_on_threads(int threads, size_t count, const Body& body) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      Buffers buffers;
      for (size_t job = next++; job < count; job = next++) body(job, buffers);
    } catch (...) {
      next = count;
      const std::scoped_lock lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  const size_t helpers = std::min(static_cast<size_t>(threads), std::max<size_t>(count, 1)) - 1;
  std::vector<std::jthread> running;
  running.reserve(helpers);
  try {
    while (running.size() < helpers) running.emplace_back(work);
  } catch (const std::system_error&) {
    // The system gives no more threads: those that there are do the work.
  }
  work();
  running.clear();
  if (failure) std::rethrow_exception(failure);
}

// The checksum of a tensor whose pieces arrive in any order.
class ArrivingSum {
 public:
  void add(size_t piece, ChecksumPart part) {
    const std::scoped_lock lock(mutex_);
    waiting_.emplace(piece, std::move(part));
    for (auto at = waiting_.find(next_); at != waiting_.end(); at = waiting_.find(next_)) {
      sum_.append(at->second);
      waiting_.erase(at);
      ++next_;
    }
  }
  [[nodiscard]] std::string hex() const { return sum_.hex(); }

 private:
  std::mutex mutex_;
  std::map<size_t, ChecksumPart> waiting_;
  size_t next_ = 0;
  Checksum sum_;
};

}  // namespace

// Bytes that one thread reads at a time: of a plain tensor, or of one frame.
struct BlobLoader::Piece {
  size_t request = 0;
  size_t number = 0;      // of the request's pieces
  int64_t in_tensor = 0;  // of the first byte
  MutableBytes out = {};
  int64_t offset = 0;                // of a plain file
  const SeekEntry* frame = nullptr;  // of a compressed one
  size_t in_frame = 0;
};

// One call of read().
class BlobLoader::Reading {
 public:
  Reading(const BlobLoader& blob, std::span<const LoadRequest> requests, const LoadOptions& options)
      : blob_(blob), requests_(requests), options_(options), sums_(requests.size()) {
    for (size_t i = 0; i < requests.size(); ++i) {
      in_context(place(i), [&] {
        check_verifiable(requests[i]);
        blob.cut(requests, i, pieces_);
      });
    }
  }

  void run() {
    run_on_threads(options_.threads, pieces_.size(), [this](size_t piece, Buffers& buffers) {
      if (options_.cancel != nullptr && __atomic_load_n(options_.cancel, __ATOMIC_RELAXED) != 0) {
        throw Cancelled();
      }
      in_context(place(pieces_[piece].request), [&] { read(pieces_[piece], buffers); });
    });
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (options_.verify && is_whole(requests_[i])) compare(i);
    }
  }

 private:
  [[nodiscard]] const Layer& layer_of(const LoadRequest& request) const {
    return blob_.layers_[request.layer];
  }
  [[nodiscard]] const ManifestTensor& tensor_of(const LoadRequest& request) const {
    return blob_.manifest_.layers[request.layer].tensors[request.tensor];
  }
  [[nodiscard]] std::string place(size_t request) const {
    return fmt::format("{}: {}", layer_of(requests_[request]).path.string(),
                       tensor_of(requests_[request]).name);
  }
  [[nodiscard]] bool is_whole(const LoadRequest& request) const {
    return static_cast<int64_t>(request.out.size()) == tensor_of(request).spec.bytes();
  }

  void check_verifiable(const LoadRequest& request) const {
    if (!options_.verify || is_whole(request) || !layer_of(request).frames.empty()) return;
    throw Error::usage("a part of a tensor in a plain file has no checksum to verify");
  }

  void read(const Piece& piece, Buffers& buffers) {
    const bool summed = options_.verify && is_whole(requests_[piece.request]);
    ChecksumPart sum;
    if (summed) sum.begin(piece.in_tensor);
    if (piece.frame == nullptr) {
      read_plain(piece, summed ? &sum : nullptr);
    } else if (!read_straight(piece, summed ? &sum : nullptr)) {
      decode(piece, buffers);
      if (summed) {
        sum.begin(piece.in_tensor);
        sum.update(piece.out);
      }
    }
    if (summed) sums_[piece.request].add(piece.number, std::move(sum));
  }

  void read_plain(const Piece& piece, ChecksumPart* sum) const {
    const PositionedFile& file = layer_of(requests_[piece.request]).file;
    if (sum == nullptr) return file.read(piece.offset, piece.out);
    for (size_t at = 0; at < piece.out.size(); at += kHashPiece) {
      const auto part = piece.out.subspan(at, std::min(kHashPiece, piece.out.size() - at));
      file.read(piece.offset + static_cast<int64_t>(at), part);
      sum->update(part);
    }
  }

  // Whole tensors are compared with the manifest instead.
  [[nodiscard]] FrameCheck check_of(const Piece& piece) const {
    return options_.verify && !is_whole(requests_[piece.request]) ? FrameCheck::kChecksums
                                                                  : FrameCheck::kSizes;
  }

  // A frame that is wanted whole, and needs no decoding. False for another.
  bool read_straight(const Piece& piece, ChecksumPart* sum) const {
    const SeekEntry& entry = *piece.frame;
    if (std::cmp_not_equal(piece.out.size(), entry.frame.decoded)) return false;
    const PositionedFile& file = layer_of(requests_[piece.request]).file;
    return read_raw_frame(entry.frame, piece.out, check_of(piece), sum,
                          [&](int64_t offset, std::span<const MutableBytes> parts) {
                            file.read(entry.encoded_offset + offset, parts);
                          });
  }

  void decode(const Piece& piece, Buffers& buffers) const {
    const PositionedFile& file = layer_of(requests_[piece.request]).file;
    const SeekEntry& entry = *piece.frame;
    const auto size = static_cast<size_t>(entry.frame.decoded);
    buffers.encoded.resize(static_cast<size_t>(entry.frame.encoded));
    file.read(entry.encoded_offset, buffers.encoded);
    if (piece.out.size() == size) {
      return decode_frame(buffers.encoded, entry.frame, piece.out, check_of(piece));
    }
    buffers.decoded.resize(size);
    decode_frame(buffers.encoded, entry.frame, buffers.decoded, check_of(piece));
    std::memcpy(piece.out.data(), buffers.decoded.data() + piece.in_frame, piece.out.size());
  }

  void compare(size_t request) const {
    if (sums_[request].hex() == tensor_of(requests_[request]).xxh3_128) return;
    throw Error::input(fmt::format("{}: checksum differs", place(request)));
  }

  const BlobLoader& blob_;
  std::span<const LoadRequest> requests_;
  const LoadOptions& options_;
  std::vector<Piece> pieces_;
  std::vector<ArrivingSum> sums_;  // by request
};

BlobLoader::BlobLoader(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kManifestName;
  in_context(path.string(), [&] {
    manifest_text_ = read_text_file(path, kMaxManifestBytes);
    manifest_ = parse_manifest(manifest_text_);
  });
  for (const ManifestLayer& layer : manifest_.layers) {
    const std::filesystem::path file = directory / layer.file;
    layers_.push_back(in_context(file.string(), [&] { return open_layer(file, layer); }));
  }
}

BlobLoader::Layer BlobLoader::open_layer(const std::filesystem::path& path,
                                         const ManifestLayer& stated) {
  Layer layer{.path = path, .file = PositionedFile(path)};
  const PositionedFile& file = layer.file;
  if (file.size() != stated.size) {
    throw Error::input(fmt::format("{} bytes, {} in the manifest", file.size(), stated.size));
  }
  const auto read = [&](int64_t offset, int64_t bytes) {
    UninitializedBytes out(static_cast<size_t>(bytes));
    file.read(offset, out);
    return out;
  };
  UninitializedBytes front = read(0, std::min<int64_t>(file.size(), kSafetensorsLengthBytes));
  int64_t decoded = file.size();
  if (is_zstd(front)) {
    const int64_t footer = std::min(file.size(), kSeekFooterBytes);
    const int64_t table = seek_table_bytes(read(file.size() - footer, footer), file.size());
    layer.frames = read_seek_table(read(file.size() - table, table), file.size());
    if (layer.frames.empty()) throw Error::input("the seek table names no frame");
    const FrameInfo& first = layer.frames.front().frame;
    const SeekEntry& last = layer.frames.back();
    decoded = last.decoded_offset + last.frame.decoded;
    front.resize(static_cast<size_t>(first.decoded));
    decode_frame(read(0, first.encoded), first, front);
  } else {
    uint64_t length = 0;  // of the header: the parser looks at it again
    std::memcpy(&length, front.data(), front.size());
    const uint64_t most = std::min<uint64_t>(length, kMaxSafetensorsHeader);
    front = read(0, std::min(file.size(), kSafetensorsLengthBytes + static_cast<int64_t>(most)));
  }
  const SafetensorsHeader header = parse_safetensors_header(front, decoded);
  layer.data_start = header.data_start;
  layer.header_text.assign(reinterpret_cast<const char*>(front.data()) + kSafetensorsLengthBytes,
                           static_cast<size_t>(header.data_start - kSafetensorsLengthBytes));
  const bool equal = std::ranges::equal(header.tensors, stated.tensors,
                                        [](const SafetensorsTensor& a, const ManifestTensor& b) {
                                          return a.name == b.name && a.spec == b.spec;
                                        });
  if (!equal) throw Error::input("its tensors are not those of the manifest");
  for (const SafetensorsTensor& tensor : header.tensors) layer.offsets.push_back(tensor.begin);
  layer.offsets.push_back(decoded - header.data_start);
  return layer;
}

int64_t BlobLoader::tensor_offset(size_t layer, size_t tensor) const {
  return layers_[layer].offsets[tensor];
}

int64_t BlobLoader::data_bytes(size_t layer) const { return layers_[layer].offsets.back(); }

int64_t BlobLoader::cut_end(size_t layer, size_t tensor, int64_t begin, int64_t limit) const {
  const Layer& in = layers_[layer];
  const int64_t bytes = manifest_.layers[layer].tensors[tensor].spec.bytes();
  if (limit >= bytes - begin) return bytes;
  const int64_t start = in.data_start + in.offsets[tensor];  // in the decoded file
  const auto next =
      std::ranges::upper_bound(in.frames, start + begin + limit, {}, &SeekEntry::decoded_offset);
  const int64_t end = next == in.frames.begin() ? 0 : (next - 1)->decoded_offset - start;
  return end > begin ? end : begin + limit;
}

void BlobLoader::cut(std::span<const LoadRequest> requests, size_t index,
                     std::vector<Piece>& pieces) const {
  const LoadRequest& request = requests[index];
  const Layer& layer = layers_[request.layer];
  const int64_t start = layer.data_start + layer.offsets[request.tensor] + request.offset;
  MutableBytes rest = request.out;
  int64_t at = start;  // in the decoded file
  auto frame = layer.frames.begin();
  if (!layer.frames.empty()) {
    frame = std::ranges::upper_bound(layer.frames, at, {}, &SeekEntry::decoded_offset) - 1;
  }
  for (size_t number = 0; !rest.empty(); ++number) {
    Piece piece{.request = index, .number = number, .in_tensor = request.offset + at - start};
    int64_t bytes = kPieceBytes;
    if (layer.frames.empty()) {
      piece.offset = at;
    } else {
      // Frames of no bytes are no one's.
      while (frame->decoded_offset + frame->frame.decoded <= at) ++frame;
      piece.frame = &*frame;
      piece.in_frame = static_cast<size_t>(at - frame->decoded_offset);
      bytes = frame->decoded_offset + frame->frame.decoded - at;
    }
    piece.out = rest.first(std::min(rest.size(), static_cast<size_t>(bytes)));
    rest = rest.subspan(piece.out.size());
    at += static_cast<int64_t>(piece.out.size());
    pieces.push_back(piece);
  }
}

void BlobLoader::read(std::span<const LoadRequest> requests, const LoadOptions& options) const {
  Reading(*this, requests, options).run();
}

}  // namespace mxfp4
