#include "formats/output/observe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "formats/blob/blob_files.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/blob/blob_writer.hpp"
#include "formats/output/own_files.hpp"
#include "formats/output/plan_difference.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// What differs between an unfinished run and the one that asks.
enum class Begun : uint8_t { kSame, kFlags, kInput, kOther, kUnpack };

// The directories of the blobs in `output` and in its folder mxfp4_repack that have a manifest.
std::vector<fs::path> finished_blobs(const fs::path& output) {
  std::vector<fs::path> found;
  for (const fs::path& place : record_places(output)) {
    for (const fs::path& blob : find_blobs(place)) {
      std::error_code ignored;
      const bool known = std::ranges::find(found, blob) != found.end();
      if (!known && fs::exists(blob / kManifestName, ignored)) found.push_back(blob);
    }
  }
  return found;
}

std::string holds_text(int64_t layers, const JournalContent& begun) {
  if (layers > 0) return fmt::format("a complete result of {} layer files", layers);
  if (begun.bytes == 0) return "files of an earlier run";
  return fmt::format("an unfinished conversion, {} of {} layer files complete",
                     finished_layers(begun), begun.layer_files);
}

// Whether the file is what an unfinished conversion may leave: a journal, a temporary, a blob's index
// or a packed layer.
bool is_piece_of_blob(const fs::path& path) {
  if (is_journal_or_temporary(path)) return true;
  return path.filename() == kIndexName ? is_blob_index(path) : is_packed_layer(path);
}

class Observer {
 public:
  Observer(const OutputDirectory& directory, const Wanted& wanted)
      : directory_(directory),
        wanted_(wanted),
        out_(directory.path()),
        blob_(blob_place(out_, wanted.include_rest)) {}

  Seen look() {
    seen_.named.out = out_.string();
    seen_.named.at = out_.string();
    seen_.there = what_is_there();
    if (!files_.empty()) seen_.holds = holds_text(layers_, seen_.journal);
    return std::move(seen_);
  }

 private:
  There what_is_there() {
    if (!directory_.exists()) return There::kNothing;
    const bool empty = directory_.is_empty();
    const auto beside = wanted_.planned.empty() ? std::nullopt : directory_.begun_replacement();
    if (empty && !beside) return There::kEmpty;
    const OwnFiles own = find_own_files(out_, Evidence::kName);
    if (!own.foreign.empty()) return named(There::kForeign, std::ranges::min(own.foreign));
    for (const OwnFile& file : own.files) files_.push_back(file.path);
    const std::vector<fs::path> finished = finished_blobs(out_);
    for (const fs::path& blob : finished) note_lost_rank(blob.filename());
    // A new directory of another conversion is left alone if OUT holds a result.
    if (beside) {
      const Begun differs = compare(beside->journal, beside->place);
      seen_.beside = differs == Begun::kSame || finished.empty();
      if (seen_.beside) return unfinished(beside->journal, differs);
    }
    if (const auto there = results(finished)) return *there;
    if (const auto there = records()) return stray(*there);
    if (!seen_.ranks.empty()) return stray(There::kSomeRanks);
    if (!seen_.other_ranks.empty()) return stray(There::kOtherRanks);
    for (const fs::path& file : files_) {
      if (!is_piece_of_blob(out_ / file)) return named(There::kNoRecord, file);
    }
    return stray(There::kPieces);
  }

  There named(There there, const fs::path& file) {
    seen_.named.what = file.string();
    return there;
  }
  There at(There there, const fs::path& path) {
    seen_.named.at = path.string();
    return there;
  }

  // Without --rank, a conversion makes all ranks.
  void note_lost_rank(const fs::path& folder) {
    const std::vector<Manifest>& planned = wanted_.planned;
    if (planned.empty() || !is_rank_directory(folder.string())) return;
    const bool all = static_cast<int64_t>(planned.size()) == planned.front().rank.num_ranks;
    const bool made = std::ranges::any_of(
        planned, [&](const Manifest& one) { return rank_directory(one.rank) == folder; });
    if (!all && !made) seen_.lost_rank = folder.string();
  }

  // Complete ranks, of this conversion and of others. The last one that was found is what refusals
  // name.
  std::optional<There> results(const std::vector<fs::path>& finished) {
    std::vector<Manifest> manifests;
    try {
      for (const fs::path& blob : finished) manifests.push_back(read_manifest(blob));
    } catch (const Error& error) {
      seen_.cause = error;
      seen_.named.what = error.what();
      return There::kDamagedManifest;
    }
    for (const Manifest& manifest : manifests) {
      layers_ += static_cast<int64_t>(manifest.layers.size());
    }
    for (size_t i = 0; i < finished.size(); ++i) {
      if (wanted_.planned.empty()) return at(There::kOtherResult, finished[i]);
      if (const auto there = result(finished[i], std::move(manifests[i]))) return there;
    }
    const bool complete = !wanted_.planned.empty() && seen_.ranks.size() == wanted_.planned.size();
    return complete ? std::optional(There::kResult) : std::nullopt;
  }

  std::optional<There> result(const fs::path& blob, Manifest manifest) {
    const auto planned = std::ranges::find_if(wanted_.planned, [&](const Manifest& one) {
      return identity_of(blob_ / rank_directory(one.rank)) == identity_of(blob);
    });
    const bool is_planned = planned != wanted_.planned.end();
    const Manifest& then = is_planned ? *planned : wanted_.planned.front();
    std::vector<std::string> differences = differing_flags(manifest, then);
    const fs::path place = blob_ / rank_directory(manifest.rank);
    const bool other_rank = !is_planned && manifest.rank.num_ranks == then.rank.num_ranks &&
                            identity_of(place) == identity_of(blob) &&
                            differences == std::vector<std::string>{"the ranks"};
    if (!is_planned && differences.empty()) differences.emplace_back("the ranks");
    if (!differences.empty() && !other_rank) {
      seen_.named.what = fmt::format("{}", fmt::join(differences, "; "));
      return at(There::kOtherResult, blob);
    }
    for (const ManifestLayer& layer : manifest.layers) {
      written_.insert(name_in_blob(manifest.rank, layer.file));
    }
    seen_.named.what = rank_directory(manifest.rank).string();
    (other_rank ? seen_.other_ranks : seen_.ranks).push_back(std::move(manifest));
    return std::nullopt;
  }

  // Journals and shards' manifests.
  std::optional<There> records() {
    const auto [begun, place] = whole_run();
    std::vector<fs::path> shards;
    for (const fs::path& at : record_places(out_)) {
      for (fs::path& path : find_shard_manifests(at)) shards.push_back(std::move(path));
    }
    if (!shards.empty()) {
      if (begun.bytes > 0) return at(There::kShardsAndWhole, shards.front().parent_path());
      return among_shards(shards);
    }
    if (begun.bytes > 0) return unfinished(begun, compare(begun, place));
    return begun_shards();
  }

  std::pair<JournalContent, fs::path> whole_run() const {
    for (const fs::path& place : record_places(out_)) {
      JournalContent begun = read_journal(place / journal_name({}));
      if (begun.bytes > 0) return {std::move(begun), place};
    }
    return {};
  }

  There unfinished(const JournalContent& begun, Begun differs) {
    seen_.journal = begun;
    if (differs == Begun::kFlags) seen_.named.what = given_differences(begun.flags, wanted_.flags);
    switch (differs) {
      case Begun::kSame:
        return There::kUnfinished;
      case Begun::kFlags:
        return There::kUnfinishedFlags;
      case Begun::kInput:
        return There::kUnfinishedInput;
      case Begun::kUnpack:
        return There::kUnfinishedUnpack;
      case Begun::kOther:
        break;
    }
    return There::kUnfinishedOther;
  }

  There among_shards(const std::vector<fs::path>& paths) {
    if (!wanted_.shard) return at(There::kShards, paths.front().parent_path());
    for (const fs::path& path : paths) {
      ShardManifest shard = read_shard_manifest(path);
      const bool own = shard.shard.index == wanted_.shard->index;
      // Without any other tensor or file, --include-rest changes only the place.
      if (shard.plan != wanted_.plan || shard.shard.count != wanted_.shard->count ||
          path.parent_path() != blob_) {
        return at(There::kShardsOther, path);
      }
      if (shard.source.contradicts(wanted_.source)) {
        return at(own ? There::kOwnShardInput : There::kShardsInput, path);
      }
      if (own) seen_.own_shard = std::move(shard);
    }
    if (seen_.own_shard) return at(There::kOwnShard, blob_ / shard_manifest_name(*wanted_.shard));
    return own_run().value_or(There::kShards);
  }

  // This shard's unfinished run, if it finished a file.
  std::optional<There> own_run() {
    for (const fs::path& place : record_places(out_)) {
      const fs::path path = place / journal_name(wanted_.shard);
      JournalContent begun = read_journal(path);
      if (begun.files.empty()) continue;
      const Begun differs = compare(begun, place);
      if (differs == Begun::kFlags) {
        seen_.named.what = given_differences(begun.flags, wanted_.flags);
      }
      seen_.journal = std::move(begun);
      return at(differs == Begun::kSame    ? There::kOwnBegun
                : differs == Begun::kFlags ? There::kOwnBegunFlags
                : differs == Begun::kInput ? There::kOwnBegunInput
                                           : There::kOwnBegunOther,
                path);
    }
    return std::nullopt;
  }

  std::optional<There> begun_shards() {
    if (wanted_.shard) {
      if (const auto there = own_run()) return there;
    }
    const auto shard = std::ranges::find_if(files_, [&](const fs::path& file) {
      return file.filename() != journal_name({}) && is_record(out_ / file);
    });
    if (shard == files_.end()) return std::nullopt;
    return named(There::kShardBegun, *shard);
  }

  // Compares the run that wrote a journal into `place` with the one that asks. A run with another
  // --include-rest keeps its journal in another place, and its plan may be this one's if the input
  // has nothing but experts.
  [[nodiscard]] Begun compare(const JournalContent& begun, const fs::path& place) const {
    if (begun.plan == kUnpackPlan) return Begun::kUnpack;
    const bool same_place = (place.filename() == kBlobFolder) == wanted_.include_rest;
    if (begun.plan == wanted_.plan && same_place) {
      return begun.stamp == wanted_.source.stamp ? Begun::kSame : Begun::kInput;
    }
    return given_differences(begun.flags, wanted_.flags).empty() ? Begun::kOther : Begun::kFlags;
  }

  // There::kStray if a layer file is there that neither this conversion nor a complete rank names.
  There stray(There there) {
    const bool concerned = wanted_.shard
                               ? there == There::kShards || there == There::kShardBegun ||
                                     there == There::kOwnBegun || there == There::kPieces
                               : there == There::kUnfinished || there == There::kPieces ||
                                     there == There::kSomeRanks || there == There::kOtherRanks;
    if (!concerned || wanted_.planned.empty()) return there;
    for (const Manifest& manifest : wanted_.planned) {
      for (const ManifestLayer& layer : manifest.layers) {
        written_.insert(name_in_blob(manifest.rank, layer.file));
      }
    }
    // The input's other files may have any names.
    for (const ManifestFile& file : wanted_.planned.front().rest) {
      written_.insert("../" + file.name);
    }
    for (const fs::path& file : files_) {
      const std::string in_blob = (out_ / file).lexically_relative(blob_).string();
      if (file.filename().string().starts_with("layer-") && !written_.contains(in_blob)) {
        return named(There::kStray, file);
      }
    }
    return there;
  }

  const OutputDirectory& directory_;
  const Wanted& wanted_;
  const fs::path& out_;
  fs::path blob_;
  std::vector<fs::path> files_;    // relative to OUT
  std::set<std::string> written_;  // layer files that belong here, relative to the blob
  int64_t layers_ = 0;             // in manifests
  Seen seen_;
};

}  // namespace

Seen observe(const OutputDirectory& directory, const Wanted& wanted) {
  Seen seen = Observer(directory, wanted).look();
  // Another shard may begin or end between two look-ups: then its file was there before its record.
  for (int again = 0; again < 2; ++again) {
    const bool settled = seen.there != There::kForeign && seen.there != There::kNoRecord &&
                         seen.there != There::kStray;
    if (!wanted.shard || settled) break;
    seen = Observer(directory, wanted).look();
  }
  return seen;
}

int64_t finished_layers(const JournalContent& journal) {
  return std::ranges::count_if(journal.files,
                               [](const auto& entry) { return !entry.second.tensors.empty(); });
}

std::vector<fs::path> record_places(const fs::path& output) {
  return {output, output / kBlobFolder};
}

fs::path blob_place(const fs::path& home, bool include_rest) {
  return include_rest ? home / kBlobFolder : home;
}

std::string journal_name(const std::optional<Shard>& shard) {
  if (!shard) return fmt::format("{}progress", kJournalPrefix);
  return fmt::format("{}shard-{:03}-of-{:03}.progress", kJournalPrefix, shard->index, shard->count);
}

bool is_record(const fs::path& path) {
  const std::string name = path.filename().string();
  if (is_shard_manifest(name)) return true;
  return name.starts_with(kJournalPrefix) && read_journal(path).bytes > 0;
}

bool is_journal_or_temporary(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(kJournalPrefix) || is_temporary(name);
}

}  // namespace mxfp4
