#include "formats/blob/blob_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "formats/blob/raw_frames.hpp"
#include "formats/os/atomic_file.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/output.hpp"
#include "lib/plan/frames.hpp"

namespace mxfp4 {
namespace {

// Writes many parts to one place of a file, one behind another. Small parts are put together first.
// Bytes are summed just before they are written, while they are in the cache.
class GatheredWrite {
 public:
  // Half of a small second-level cache.
  static constexpr size_t kBatchBytes = size_t{256} << 10;

  // Added bytes go to `file` from `offset` on, and to `sum`. `small` is memory for small parts.
  GatheredWrite(AtomicFile& file, int64_t offset, ChecksumPart& sum, std::vector<std::byte>& small)
      : file_(file), offset_(offset), sum_(sum), small_(small) {
    small_.clear();
  }

  void add(ConstBytes bytes) {
    // From this size on, writing a part by itself costs less than copying it.
    constexpr size_t kLargePart = size_t{16} << 10;
    while (bytes.size() >= kLargePart) {
      const ConstBytes part = bytes.first(std::min(bytes.size(), kBatchBytes));
      write(part);
      bytes = bytes.subspan(part.size());
    }
    small_.insert(small_.end(), bytes.begin(), bytes.end());
    if (small_.size() >= kBatchBytes) finish();
  }
  void finish() { write({}); }

 private:
  void write(ConstBytes large) {
    if (small_.empty() && large.empty()) return;
    const std::array<ConstBytes, 2> parts = {ConstBytes(small_), large};
    for (ConstBytes part : parts) sum_.update(part);
    file_.write_at(offset_, parts);
    offset_ += static_cast<int64_t>(small_.size() + large.size());
    small_.clear();
  }

  AtomicFile& file_;
  int64_t offset_;
  ChecksumPart& sum_;
  std::vector<std::byte>& small_;
};

// Calls visit(content) for the frames of a piece.
template <class Visit>
void each_frame(const PlannedTensor& tensor, const Piece& piece, ConstBytes decoded,
                Visit&& visit) {
  for (int64_t size : frame_sizes(piece.granules, tensor.granule_bytes)) {
    visit(decoded.first(static_cast<size_t>(size)));
    decoded = decoded.subspan(static_cast<size_t>(size));
  }
}

// The manifest's entry for a planned file; checksums and the file's size are still empty.
ManifestLayer describe_layer(const Plan& plan, const ModelLayers& model, size_t file, bool zstd) {
  const PlannedFile& planned = plan.files[file];
  const ExpertLayer& source = model.layers[planned.layer];
  ManifestLayer layer;
  layer.index = source.index;
  layer.prefix = source.prefix;
  layer.engine_prefix = source.engine_prefix;
  layer.file = layer_file_name(source.index, zstd);
  layer.recipe = planned.recipe;
  for (const PlannedTensor& tensor : planned.tensors) {
    layer.tensors.push_back(
        {tensor.name, tensor.spec, "", (*planned.outputs)[tensor.output].storage});
  }
  layer.published = source.published;
  return layer;
}

}  // namespace

void encode_piece(FrameEncoder& encoder, const PlannedTensor& tensor, const Piece& piece,
                  OutgoingPiece& outgoing) {
  outgoing.frames.clear();
  outgoing.compressed.clear();
  each_frame(tensor, piece, outgoing.decoded, [&](ConstBytes content) {
    const FrameInfo raw{raw_frame_bytes(std::ssize(content)), std::ssize(content), 0};
    outgoing.frames.push_back(
        encoder.shorten(content, tensor.codes, outgoing.compressed).value_or(raw));
  });
}

// A layer file that is being written. Its stages (place, store, finish) share no changing state.
class BlobWriter::LayerFile {
 public:
  LayerFile(const Directory& directory, const std::string& name, size_t tensors, bool zstd)
      : file_(directory, name), zstd_(zstd), sums_(tensors) {}

  void append_header(ConstBytes stored) {
    file_.append(stored);
    file_sum_.update(stored);
    end_ = static_cast<int64_t>(stored.size());
  }

  void add_frame(const FrameInfo& frame) { frames_.push_back(frame); }

  // Gives the next piece its place.
  void place(OutgoingPiece& piece) {
    const auto decoded = static_cast<int64_t>(piece.decoded.size());
    piece.offset = end_;
    if (zstd_) {
      for (const FrameInfo& frame : piece.frames) end_ += frame.encoded;
    } else {
      end_ += decoded;
    }
    placed_bytes_ += decoded;
  }

  void store(const PlannedTensor& tensor, const Piece& planned, OutgoingPiece& piece) {
    piece.file_sum.begin(piece.offset);
    GatheredWrite write(file_, piece.offset, piece.file_sum, piece.gathered);
    piece.shared_sum = false;
    if (zstd_) {
      store_frames(tensor, planned, piece, write);
    } else {
      store_plain(planned.first_granule * tensor.granule_bytes, piece, write);
    }
    write.finish();
  }

  void finish(size_t tensor, const OutgoingPiece& piece) {
    file_sum_.append(piece.file_sum);
    sums_[tensor].append(piece.shared_sum ? piece.file_sum : piece.tensor_sum);
    if (zstd_) frames_.insert(frames_.end(), piece.frames.begin(), piece.frames.end());
    finished_bytes_ += static_cast<int64_t>(piece.decoded.size());
  }

  // Calls `before` when `layer` is complete, before the file gets its name.
  void commit(ManifestLayer& layer, const std::function<void()>& before) {
    if (zstd_) {
      const std::vector<std::byte> table = make_seek_table(frames_);
      file_.append(table);
      file_sum_.update(table);
    }
    layer.size = file_.size();
    layer.xxh3_128 = file_sum_.hex();
    for (size_t i = 0; i < sums_.size(); ++i) layer.tensors[i].xxh3_128 = sums_[i].hex();
    file_.commit(before);
  }

  [[nodiscard]] int64_t placed_bytes() const { return placed_bytes_; }
  [[nodiscard]] int64_t finished_bytes() const { return finished_bytes_; }

 private:
  static void store_plain(int64_t in_tensor, OutgoingPiece& piece, GatheredWrite& write) {
    piece.shared_sum = (piece.offset - in_tensor) % ChecksumPart::kPeriod == 0;
    if (!piece.shared_sum) piece.tensor_sum.begin(in_tensor);
    ConstBytes rest = piece.decoded;
    while (!rest.empty()) {
      const ConstBytes part = rest.first(std::min(rest.size(), GatheredWrite::kBatchBytes));
      if (!piece.shared_sum) piece.tensor_sum.update(part);
      write.add(part);
      rest = rest.subspan(part.size());
    }
  }

  static void store_frames(const PlannedTensor& tensor, const Piece& planned, OutgoingPiece& piece,
                           GatheredWrite& write) {
    piece.tensor_sum.begin(planned.first_granule * tensor.granule_bytes);
    ConstBytes compressed = piece.compressed;
    auto frame = piece.frames.begin();
    each_frame(tensor, planned, piece.decoded, [&](ConstBytes content) {
      if (frame->encoded == raw_frame_bytes(frame->decoded)) {
        *frame = write_raw_frame(content, &piece.tensor_sum,
                                 [&write](ConstBytes bytes) { write.add(bytes); });
      } else {
        piece.tensor_sum.update(content);
        write.add(compressed.first(static_cast<size_t>(frame->encoded)));
        compressed = compressed.subspan(static_cast<size_t>(frame->encoded));
      }
      ++frame;
    });
  }

  AtomicFile file_;
  bool zstd_;
  int64_t end_ = 0;           // of the pieces that have a place
  int64_t placed_bytes_ = 0;  // decoded
  Checksum file_sum_;
  std::vector<Checksum> sums_;
  std::vector<FrameInfo> frames_;
  int64_t finished_bytes_ = 0;  // decoded
};

std::vector<Manifest> planned_manifests(const Plan& plan, const ModelLayers& model,
                                        const Manifest& common) {
  std::vector<Manifest> manifests;
  for (const RankSlice& rank : plan.ranks) {
    manifests.push_back(common);
    manifests.back().rank = rank;
  }
  for (size_t file = 0; file < plan.files.size(); ++file) {
    manifests[plan.files[file].rank].layers.push_back(
        describe_layer(plan, model, file, common.compression.zstd));
  }
  return manifests;
}

void write_manifests(const Directory& blob, const std::vector<Manifest>& manifests) {
  for (const Manifest& manifest : manifests) {
    const Directory home = blob.folder(rank_directory(manifest.rank));
    write_atomically(home, std::string(kIndexName), write_index(manifest));
    write_atomically(home, std::string(kManifestName), write_manifest(manifest));
  }
}

BlobWriter::BlobWriter(const Directory& blob, const Plan& plan, const ModelLayers& model,
                       Manifest common, OnFinished on_finished, std::function<void()> on_named)
    : plan_(plan),
      common_(std::move(common)),
      header_encoder_(common_.compression.level),
      files_(plan.files.size()),
      done_(plan.files.size(), false),
      on_finished_(std::move(on_finished)),
      on_named_(std::move(on_named)) {
  for (const RankSlice& rank : plan.ranks) ranks_.push_back(blob.folder(rank_directory(rank)));
  for (size_t file = 0; file < plan.files.size(); ++file) {
    layers_.push_back(describe_layer(plan, model, file, common_.compression.zstd));
  }
}

BlobWriter::~BlobWriter() = default;

BlobWriter::LayerFile& BlobWriter::open(size_t file) {
  if (files_[file]) return *files_[file];
  const PlannedFile& planned = plan_.files[file];
  const RankSlice& rank = plan_.ranks[planned.rank];
  files_[file] = std::make_unique<LayerFile>(ranks_[planned.rank], layers_[file].file,
                                             planned.tensors.size(), common_.compression.zstd);
  Manifest manifest = common_;
  manifest.rank = rank;
  const std::string header = layer_header(manifest, layers_[file]);
  const ConstBytes bytes = std::as_bytes(std::span(header));
  if (common_.compression.zstd) {
    std::vector<std::byte> encoded;
    files_[file]->add_frame(header_encoder_.encode(bytes, encoded));
    files_[file]->append_header(encoded);
  } else {
    files_[file]->append_header(bytes);
  }
  return *files_[file];
}

void BlobWriter::expect_position(const Piece& piece, int64_t data_bytes) const {
  const PlannedTensor& tensor = plan_.files[piece.file].tensors[piece.tensor];
  if (data_bytes == tensor.offset + piece.first_granule * tensor.granule_bytes) return;
  throw Error::internal(fmt::format("{}: a piece came out of order", tensor.name));
}

void BlobWriter::place(const Piece& piece, OutgoingPiece& outgoing) {
  LayerFile& file = open(piece.file);
  expect_position(piece, file.placed_bytes());
  file.place(outgoing);
}

void BlobWriter::store(const Piece& piece, OutgoingPiece& outgoing) {
  const PlannedTensor& tensor = plan_.files[piece.file].tensors[piece.tensor];
  files_[piece.file]->store(tensor, piece, outgoing);
}

void BlobWriter::finish(const Piece& piece, const OutgoingPiece& outgoing) {
  LayerFile& file = *files_[piece.file];
  expect_position(piece, file.finished_bytes());
  file.finish(piece.tensor, outgoing);
  if (file.finished_bytes() == plan_.files[piece.file].data_bytes) finish_file(piece.file);
}

void BlobWriter::finish_file(size_t file) {
  ManifestLayer& layer = layers_[file];
  files_[file]->commit(layer, [&] {
    FinishedFile finished{name_in_blob(plan_.ranks[plan_.files[file].rank], layer.file),
                          layer.size,
                          layer.xxh3_128,
                          {}};
    for (const ManifestTensor& tensor : layer.tensors) finished.tensors.push_back(tensor.xxh3_128);
    on_finished_(finished);
  });
  files_[file].reset();
  on_named_();
  done_[file] = true;
  bytes_written_ += layer.size;
}

void BlobWriter::finish(const std::vector<bool>& wanted) {
  for (size_t file = 0; file < plan_.files.size(); ++file) {
    if (!wanted[file] || done_[file]) continue;
    if (plan_.files[file].data_bytes > 0) {
      throw Error::internal(fmt::format("{} is incomplete", layers_[file].file));
    }
    open(file);
    finish_file(file);
  }
}

}  // namespace mxfp4
