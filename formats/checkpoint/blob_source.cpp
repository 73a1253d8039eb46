#include "formats/checkpoint/blob_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "formats/blob/blob_check.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/blob/restored_slots.hpp"
#include "formats/checkpoint/blob_tensors.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// The directories of a blob's ranks, and their manifests in the same order.
struct Ranks {
  std::vector<fs::path> directories;
  std::vector<Manifest> manifests;
};

Ranks open_ranks(const fs::path& path) {
  Ranks ranks;
  ranks.directories = find_blobs(path);
  for (const fs::path& directory : ranks.directories) {
    ranks.manifests.push_back(read_manifest(directory));
  }
  const std::vector<std::string> findings = check_ranks(ranks.directories, ranks.manifests);
  if (!findings.empty()) throw Error::input(findings.front());
  return ranks;
}

// Which rank's part of a layer; and of which slot.
using FileKey = std::pair<size_t, size_t>;            // rank, layer
using GranuleKey = std::tuple<size_t, size_t, Slot>;  // rank, layer, slot
using MatrixKey = std::tuple<size_t, Slot, int64_t>;  // layer, slot, expert

// Restores granules, and keeps those that were asked for last: the experts of a granule, and the parts
// of an expert, are read one after another, while a conversion's files take turns.
class Granules {
 public:
  explicit Granules(const Ranks& ranks) : ranks_(ranks) {}

  ConstBytes get(size_t rank, size_t layer, Slot slot, int64_t granule, int64_t expert_bytes) {
    const GranuleKey key{rank, layer, slot};
    const auto found = std::ranges::find(kept_, key, &Kept::key);
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
      if (kept_.front().granule == granule) return kept_.front().bytes;
    } else {
      kept_.emplace_front().key = key;
    }
    Kept& kept = kept_.front();
    const OpenFile& file = open(rank, layer);
    const RestoredSlot& restored = slot_of(file, slot);
    kept.granule = -1;  // until it is restored
    kept.bytes = kept.buffer.get(restored.output->experts_per_granule * expert_bytes);
    in_context(path_of(rank, layer).string(), [&] {
      restore_granule(*file.reader, restored, granule, kept.frames, scratch_, kept.bytes);
    });
    kept.granule = granule;
    drop_old();
    return kept_.front().bytes;
  }

  [[nodiscard]] int64_t experts_per_granule(size_t rank, size_t layer, Slot slot) {
    return slot_of(open(rank, layer), slot).output->experts_per_granule;
  }

 private:
  struct Kept {
    GranuleKey key;
    int64_t granule = -1;
    Buffer buffer;
    MutableBytes bytes;
    SlotFrames frames;
    [[nodiscard]] size_t size() const {
      size_t all = bytes.size();
      for (const DecodedFrame& frame : frames) all += frame.bytes.size();
      return all;
    }
  };
  struct OpenFile {
    FileKey key;
    std::unique_ptr<LayerReader> reader;
    RestorePlan plan;
  };

  [[nodiscard]] fs::path path_of(size_t rank, size_t layer) const {
    return ranks_.directories[rank] / ranks_.manifests[rank].layers[layer].file;
  }

  static const RestoredSlot& slot_of(const OpenFile& file, Slot slot) {
    const RestoredSlot* found = file.plan.slot(slot);
    if (found == nullptr) throw Error::internal("a slot that the layout does not restore");
    return *found;
  }

  // Opens a layer's file; checks all of its bytes the first time. Closes the file that was used longest
  // ago, if there are many.
  const OpenFile& open(size_t rank, size_t layer) {
    constexpr size_t kMostFiles = 64;
    const FileKey key{rank, layer};
    const auto found = std::ranges::find(files_, key, &OpenFile::key);
    if (found != files_.end()) {
      files_.splice(files_.begin(), files_, found);
      return files_.front();
    }
    const Manifest& manifest = ranks_.manifests[rank];
    const ManifestLayer& stated = manifest.layers[layer];
    OpenFile file{key, std::make_unique<LayerReader>(path_of(rank, layer)),
                  plan_restore(manifest, stated)};
    in_context(path_of(rank, layer).string(), [&] {
      if (!checked_.contains(key)) require_layer_file(*file.reader, manifest, stated);
      check_packed_tensors(file.plan, file.reader->header());
    });
    checked_.insert(key);
    files_.push_front(std::move(file));
    if (files_.size() > kMostFiles) files_.pop_back();
    return files_.front();
  }

  // Lets go of what was asked for longest ago.
  void drop_old() {
    constexpr size_t kMost = size_t{64} << 20;
    size_t bytes = 0;
    size_t kept = 0;
    for (auto each = kept_.begin(); each != kept_.end(); ++kept) {
      bytes += each->size();
      each = bytes > kMost && kept > 1 ? kept_.erase(each) : std::next(each);
    }
  }

  const Ranks& ranks_;
  std::list<Kept> kept_;       // the latest first
  std::list<OpenFile> files_;  // likewise
  std::set<FileKey> checked_;
  RestoreScratch scratch_;
};

// Puts the matrices of experts together, as the checkpoint has them.
class Matrices {
 public:
  Matrices(const Ranks& ranks, const BlobTensors& tensors)
      : ranks_(ranks), tensors_(tensors), granules_(ranks) {}

  ConstBytes get(size_t layer, Slot slot, int64_t expert) {
    const MatrixKey key{layer, slot, expert};
    const auto found = std::ranges::find(kept_, key, &Matrix::key);
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
      return kept_.front().bytes;
    }
    // The one that was used longest ago gives its memory.
    if (kept_.size() < kAllSlots.size()) kept_.emplace_back();
    kept_.splice(kept_.begin(), kept_, std::prev(kept_.end()));
    Matrix& matrix = kept_.front();
    matrix.key.reset();  // until it is whole
    for (const ExpertHolder& holder : tensors_.layers[layer].holders[static_cast<size_t>(expert)]) {
      put(layer, slot, holder, matrix);
    }
    matrix.key = key;
    return matrix.bytes;
  }

 private:
  struct Matrix {
    std::optional<MatrixKey> key;
    Buffer buffer;
    MutableBytes bytes;
  };

  void put(size_t layer, Slot slot, const ExpertHolder& holder, Matrix& matrix) {
    const Manifest& rank = ranks_.manifests[holder.rank];
    RankSlice slice = rank.rank;
    slice.padded = rank.layers[layer].loaded.dims;
    const Assembly assembly =
        make_assembly(tensors_.model, tensors_.layers[layer].layer, slot, slice);
    matrix.bytes = matrix.buffer.get(assembly.stored.bytes());
    const int64_t bytes = assembly.loaded.bytes();
    const int64_t together = granules_.experts_per_granule(holder.rank, layer, slot);
    const ConstBytes granule =
        granules_.get(holder.rank, layer, slot, holder.index / together, bytes);
    assembly.backward(granule.subspan(static_cast<size_t>(holder.index % together * bytes),
                                      static_cast<size_t>(bytes)),
                      matrix.bytes);
  }

  const Ranks& ranks_;
  const BlobTensors& tensors_;
  Granules granules_;
  std::list<Matrix>
      kept_;  // the latest first: one of each slot, as the tensors of an expert alternate
};

class RestoredSource final : public Source {
 public:
  RestoredSource(Ranks ranks, BlobTensors tensors)
      : ranks_(std::move(ranks)), tensors_(std::move(tensors)), matrices_(ranks_, tensors_) {
    const Manifest& first = ranks_.manifests.front();
    origin_ = {.kind = first.source.kind,
               .fingerprint = first.source.fingerprint,
               .files = first.source.files,
               .style = first.style,
               .all_layers = first.all_layers,
               .left_out = first.checkpoint.left_out};
    for (size_t rank = 0; rank < ranks_.directories.size(); ++rank) {
      const fs::path& directory = ranks_.directories[rank];
      files_.push_back(describe(directory / kManifestName));
      for (const ManifestLayer& layer : ranks_.manifests[rank].layers) {
        files_.push_back(describe(directory / layer.file));
      }
    }
  }

  [[nodiscard]] std::string_view kind() const override { return kBlobKind; }
  [[nodiscard]] const std::vector<SourceTensor>& tensors() const override {
    return tensors_.tensors;
  }
  [[nodiscard]] const std::map<std::string, std::string>& attributes() const override {
    return ranks_.manifests.front().checkpoint.attributes;
  }
  [[nodiscard]] std::optional<std::string> config_json() const override {
    return ranks_.manifests.front().checkpoint.config;
  }
  [[nodiscard]] const std::vector<FileStatus>& files() const override { return files_; }
  [[nodiscard]] const SourceOrigin* origin() const override { return &origin_; }

  void read(size_t index, int64_t offset, MutableBytes out) override {
    const BlobPlace& place = tensors_.places[index];
    while (!out.empty()) {
      const int64_t expert = place.expert >= 0 ? place.expert : offset / place.bytes;
      const int64_t within = place.expert >= 0 ? offset : offset % place.bytes;
      const size_t size = std::min(out.size(), static_cast<size_t>(place.bytes - within));
      const ConstBytes matrix = matrices_.get(place.layer, place.slot, expert);
      std::memcpy(out.data(), matrix.data() + place.begin + within, size);
      out = out.subspan(size);
      offset += static_cast<int64_t>(size);
    }
  }

 private:
  static FileStatus describe(const fs::path& path) {
    return in_context(path.string(), [&] { return describe_file(path); });
  }

  Ranks ranks_;
  BlobTensors tensors_;
  Matrices matrices_;
  SourceOrigin origin_;
  std::vector<FileStatus> files_;
};

// Adds what the layout of these ranks does not give back of the tensors; each once, since ranks and
// layers repeat it.
void add_losses(BlobSource& blob, const Ranks& ranks, const std::set<Slot>& slots) {
  std::set<std::string> lost;
  for (const Manifest& rank : ranks.manifests) {
    const auto held = std::ranges::find_if(
        rank.layers, [](const ManifestLayer& layer) { return layer.loaded.dims.num_experts > 0; });
    if (held == rank.layers.end()) continue;  // an empty rank
    for (const SlotLoss& loss : plan_restore(rank, *held).lost) {
      if (!slots.contains(loss.slot)) continue;  // the checkpoint has no such tensors
      blob.exact = false;
      blob.whole = blob.whole && !loss.whole;
      lost.insert(fmt::format("layout {}: {}", rank.layout, loss.what));
    }
  }
  blob.lost.assign(lost.begin(), lost.end());
}

}  // namespace

BlobSource open_blob_source(const fs::path& path) {
  Ranks ranks = open_ranks(path);
  BlobTensors tensors = describe_blob_tensors(path, ranks.manifests);
  std::set<Slot> slots;
  for (const BlobPlace& place : tensors.places) slots.insert(place.slot);
  BlobSource blob;
  add_losses(blob, ranks, slots);
  blob.lost.insert(blob.lost.end(), tensors.lost.begin(), tensors.lost.end());
  blob.source = std::make_unique<RestoredSource>(std::move(ranks), std::move(tensors));
  return blob;
}

}  // namespace mxfp4
