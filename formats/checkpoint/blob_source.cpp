#include "formats/checkpoint/blob_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "formats/blob/blob_check.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/blob/restored_slots.hpp"
#include "formats/checkpoint/blob_tensors.hpp"
#include "formats/checkpoint/described_source.hpp"
#include "formats/checkpoint/latest.hpp"
#include "formats/remote/files_at.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/pool.hpp"
#include "lib/layouts/output.hpp"
#include "lib/plan/frames.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

BlobRanks open_ranks(const fs::path& path) {
  std::vector<fs::path> directories = find_blobs(path);
  // The caller saw one; the system may not show the same twice.
  if (directories.empty()) {
    throw Error::input(fmt::format("no {} to be seen", kManifestName)).in_file(path.string());
  }
  return read_ranks(std::move(directories));
}

using FileKey = std::pair<size_t, size_t>;                     // rank, layer
using GranuleKey = std::tuple<size_t, size_t, Slot, int64_t>;  // rank, layer, slot, granule
using MatrixKey = std::tuple<size_t, Slot, int64_t>;           // layer, slot, expert

// One layer of one rank, open.
struct LayerFile {
  std::string path;
  std::unique_ptr<LayerReader> reader;
  RestorePlan plan;

  [[nodiscard]] const RestoredSlot& slot(Slot slot) const {
    const RestoredSlot* found = plan.slot(slot);
    if (found == nullptr) throw Error::internal("a slot that the layout does not restore");
    return *found;
  }
};

// What all threads share: the open files, and granules that several experts lie in.
class SharedParts {
 public:
  explicit SharedParts(const BlobRanks& ranks) : ranks_(ranks) {}

  // Checks all bytes of a file the first time.
  std::shared_ptr<const LayerFile> file(size_t rank, size_t layer) {
    return files_.get({rank, layer}, 0, [&] { return open(rank, layer); });
  }

  // A granule of several experts, `bytes` in all.
  std::shared_ptr<const std::vector<std::byte>> granule(const GranuleKey& key,
                                                        const LayerFile& file, size_t bytes) {
    return granules_.get(key, bytes, [&] {
      auto restored = std::make_shared<std::vector<std::byte>>(bytes);
      SlotFrames frames;
      RestoreScratch scratch;
      in_file(file.path, [&] {
        restore_granule(*file.reader, file.slot(std::get<Slot>(key)), std::get<int64_t>(key),
                        frames, scratch, *restored);
      });
      return restored;
    });
  }

 private:
  std::shared_ptr<const LayerFile> open(size_t rank, size_t layer) {
    const Manifest& manifest = ranks_.manifests[rank];
    const ManifestLayer& stated = manifest.layers[layer];
    const fs::path path = ranks_.directories[rank] / stated.file;
    auto file = std::make_shared<LayerFile>(LayerFile{
        path.string(), std::make_unique<LayerReader>(path), plan_restore(manifest, stated)});
    in_file(file->path, [&] {
      if (!is_checked({rank, layer})) require_layer_file(*file->reader, manifest, stated);
      check_packed_tensors(file->plan, file->reader->header());
    });
    const std::scoped_lock lock(mutex_);
    checked_.insert({rank, layer});
    return file;
  }

  bool is_checked(const FileKey& key) {
    const std::scoped_lock lock(mutex_);
    return checked_.contains(key);
  }

  static constexpr size_t kMostFiles = 64;
  static constexpr size_t kMostBytes = size_t{64} << 20;
  const BlobRanks& ranks_;
  Latest<FileKey, LayerFile> files_{kMostFiles};
  Latest<GranuleKey, std::vector<std::byte>> granules_{SIZE_MAX, kMostBytes};
  std::mutex mutex_;  // of checked_
  std::set<FileKey> checked_;
};

// Puts the matrices of experts together, as the checkpoint has them. For one thread at a time.
class Matrices {
 public:
  Matrices(const BlobRanks& ranks, const BlobTensors& tensors, SharedParts& shared)
      : ranks_(ranks), tensors_(tensors), shared_(shared) {}

  ConstBytes get(const MatrixKey& key) {
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
    const auto [layer, slot, expert] = key;
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
    const BlobLayer& of = tensors_.layers[layer];
    const Assembly assembly = make_assembly(tensors_.model, of.layer, slot, of.slices[holder.rank]);
    matrix.bytes = matrix.buffer.get(assembly.stored.bytes());
    const int64_t bytes = assembly.loaded.bytes();
    const std::shared_ptr<const LayerFile> file = shared_.file(holder.rank, layer);
    const RestoredSlot& restored = file->slot(slot);
    const int64_t together = restored.output->experts_per_granule;
    if (together == 1) {
      const MutableBytes expert = granule_.get(bytes);
      SlotFrames& frames = frames_[static_cast<size_t>(slot)];
      in_file(file->path, [&] {
        restore_granule(*file->reader, restored, holder.index, frames, scratch_, expert);
      });
      assembly.backward(expert, matrix.bytes);
      return;
    }
    const auto granule = shared_.granule({holder.rank, layer, slot, holder.index / together}, *file,
                                         static_cast<size_t>(together * bytes));
    assembly.backward(
        ConstBytes(*granule).subspan(static_cast<size_t>(holder.index % together * bytes),
                                     static_cast<size_t>(bytes)),
        matrix.bytes);
  }

  const BlobRanks& ranks_;
  const BlobTensors& tensors_;
  SharedParts& shared_;
  Buffer granule_;
  std::array<SlotFrames, kAllSlots.size()> frames_;  // small experts share one
  RestoreScratch scratch_;
  // The latest first: one of each slot, as the tensors of an expert alternate.
  std::list<Matrix> kept_;
};

class RestoredSource final : public Source {
 public:
  RestoredSource(BlobRanks ranks, BlobTensors tensors, int64_t read_bytes)
      : ranks_(std::move(ranks)),
        tensors_(std::move(tensors)),
        shared_(ranks_),
        read_bytes_(read_bytes) {
    const Manifest& first = ranks_.manifests.front();
    contents_ = {.kind = kBlobKind,
                 .tensors = std::move(tensors_.tensors),
                 .attributes = first.checkpoint.attributes,
                 .config_json = first.checkpoint.config,
                 .origin = origin_of(first)};
    for (size_t rank = 0; rank < ranks_.directories.size(); ++rank) {
      const fs::path& directory = ranks_.directories[rank];
      contents_.files.push_back(describe(directory / kManifestName));
      for (const ManifestLayer& layer : ranks_.manifests[rank].layers) {
        contents_.files.push_back(describe(directory / layer.file));
      }
    }
  }

  [[nodiscard]] int64_t read_bytes() const override { return read_bytes_; }

  void check_unchanged() const override {
    for (const FileStatus& then : files()) require_same(then, describe(then.path));
  }

  void read(size_t index, int64_t offset, MutableBytes out) override {
    const BlobPlace& place = tensors_.places[index];
    while (!out.empty()) {
      const int64_t expert = place.expert >= 0 ? place.expert : offset / place.bytes;
      const int64_t within = place.expert >= 0 ? offset : offset % place.bytes;
      const size_t size = std::min(out.size(), static_cast<size_t>(place.bytes - within));
      matrices_.use([&](Matrices& matrices) {
        const ConstBytes matrix = matrices.get({place.layer, place.slot, expert});
        std::memcpy(out.data(), matrix.data() + place.begin + within, size);
      });
      out = out.subspan(size);
      offset += static_cast<int64_t>(size);
    }
  }

 private:
  static FileStatus describe(const fs::path& path) {
    return in_file(path.string(), [&] { return status_at(path); });
  }

  BlobRanks ranks_;
  BlobTensors tensors_;
  SharedParts shared_;
  int64_t read_bytes_;
  // One for each thread that reads.
  Pool<Matrices> matrices_{
      [this] { return std::make_unique<Matrices>(ranks_, tensors_, shared_); }};
};

// Adds what the layout of these ranks does not give back of the slots; each once, since ranks and
// layers repeat it.
template <class Slots>
void add_losses(BlobSource& blob, const BlobRanks& ranks, const Slots& slots) {
  std::set<std::string> lost;
  for (const Manifest& rank : ranks.manifests) {
    const auto held = std::ranges::find_if(
        rank.layers, [](const ManifestLayer& layer) { return layer.recipe.num_experts() > 0; });
    if (held == rank.layers.end()) continue;  // an empty rank
    for (const SlotLoss& loss : plan_restore(rank, *held).lost) {
      // The checkpoint may have no such tensors.
      if (std::ranges::find(slots, loss.slot) == slots.end()) continue;
      blob.exact = false;
      blob.whole = blob.whole && !loss.whole;
      lost.insert(fmt::format("layout {}: {}", rank.layout, loss.what));
    }
  }
  blob.lost.assign(lost.begin(), lost.end());
}

// Fills `shares`.
void add_shares(BlobSource& blob, const BlobTensors& tensors) {
  std::vector<int64_t> first(1, 0);  // expert of each layer
  for (const BlobLayer& layer : tensors.layers) {
    first.push_back(first.back() + std::ssize(layer.holders));
  }
  for (const BlobPlace& place : tensors.places) {
    blob.shares.push_back({place.expert < 0 ? -1 : first[place.layer] + place.expert, place.bytes});
  }
}

// Bytes of a granule that is restored from a layer of this plan: as written, with the outputs that
// the inverse also reads, and as loaded; and of the frames that it keeps.
int64_t granule_bytes(const RestorePlan& plan, bool compressed) {
  int64_t most = 0;
  int64_t frames = 0;
  for (const RestoredSlot& slot : plan.slots) {
    int64_t written = slot.output->program.out_bytes();
    for (const Output* other : slot.others) written += other->program.out_bytes();
    most = std::max(most, 2 * written);
    frames += static_cast<int64_t>(1 + slot.others.size()) * kFrameBytes;
  }
  return most + (compressed ? frames + kFrameBytes : 0);  // and one as it is stored
}

// One plan for each distinct layer size; puts into `read_bytes` what Source::read_bytes() says.
std::vector<RestorePlan> plan_reads(const BlobRanks& ranks, const BlobTensors& tensors,
                                    int64_t& read_bytes) {
  std::map<Slot, int64_t> matrices;  // the largest of each slot
  for (const BlobPlace& place : tensors.places) {
    int64_t& bytes = matrices[place.slot];
    bytes = std::max(bytes, place.begin + place.bytes);
  }
  std::vector<RestorePlan> plans;
  int64_t granule = 0;
  std::set<std::tuple<int64_t, int64_t, int64_t>> seen;
  for (const Manifest& rank : ranks.manifests) {
    for (const ManifestLayer& layer : rank.layers) {
      const LayerDims dims = layer.recipe.loaded().dims;
      if (dims.num_experts == 0) continue;
      if (!seen.insert({dims.num_experts, dims.hidden_size, dims.intermediate_size}).second)
        continue;
      plans.push_back(plan_restore(rank, layer));
      granule = std::max(granule, granule_bytes(plans.back(), rank.compression.zstd));
    }
  }
  read_bytes = granule;
  for (const auto& [slot, bytes] : matrices) read_bytes += bytes;
  return plans;
}

template <class Slots>
BlobSource make_source(BlobRanks ranks, BlobTensors tensors, const Slots& slots) {
  BlobSource blob;
  add_losses(blob, ranks, slots);
  blob.lost.insert(blob.lost.end(), tensors.lost.begin(), tensors.lost.end());
  add_shares(blob, tensors);
  int64_t read_bytes = 0;
  blob.plans = plan_reads(ranks, tensors, read_bytes);
  blob.source = std::make_unique<RestoredSource>(std::move(ranks), std::move(tensors), read_bytes);
  return blob;
}

}  // namespace

BlobSource open_blob_source(const fs::path& path) {
  BlobRanks ranks = open_ranks(path);
  BlobTensors tensors = describe_blob_tensors(path, ranks.manifests);
  std::set<Slot> slots;
  for (const BlobPlace& place : tensors.places) slots.insert(place.slot);
  return make_source(std::move(ranks), std::move(tensors), slots);
}

BlobSource open_loaded_source(const fs::path& directory, const Manifest& manifest) {
  BlobTensors tensors = describe_blob_tensors(directory, {as_loaded(manifest)});
  return make_source({{directory}, {manifest}}, std::move(tensors), kAllSlots);
}

void check_blob_source(const fs::path& path, const std::vector<Manifest>& manifests) {
  const Manifest& first = manifests.front();
  const auto named = [](const ManifestLayer& layer) { return layer.published.has_value(); };
  const bool whole = std::ssize(manifests) == first.rank.num_ranks;
  if (whole && std::ranges::all_of(first.layers, named)) {
    (void)describe_blob_tensors(path, manifests);
  }
}

}  // namespace mxfp4
