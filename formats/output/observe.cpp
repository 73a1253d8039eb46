#include "formats/output/observe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "formats/blob/blob_files.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/blob/blob_writer.hpp"
#include "formats/blob/plan_difference.hpp"
#include "formats/output/own_files.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

using GivenFlags = std::map<std::string, std::string>;

// The flags that differ between two runs, by name: "--level: 1, now not given; ..."; empty if none
// do. An empty value counts as not given.
std::string given_differences(const GivenFlags& then, const GivenFlags& now) {
  const auto value = [](const GivenFlags& flags, const std::string& name) {
    const auto found = flags.find(name);
    return found == flags.end() || found->second.empty() ? "not given" : found->second;
  };
  std::vector<std::string> differences;
  GivenFlags all = then;
  all.insert(now.begin(), now.end());
  for (const auto& [name, ignored] : all) {
    if (value(then, name) == value(now, name)) continue;
    differences.push_back(fmt::format("{}: {}, now {}", name, value(then, name), value(now, name)));
  }
  return fmt::format("{}", fmt::join(differences, "; "));
}

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

// Whether the file is what an unfinished conversion may leave: a journal, a temporary, a blob's
// index or a packed layer.
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
    std::optional<BegunReplacement> beside;
    if (!wanted_.planned.empty()) beside = directory_.begun_replacement();
    if (empty && !beside) return There::kNothing;
    const OwnFiles own = find_own_files(out_, Evidence::kName);
    if (!own.foreign.empty()) return named(There::kForeign, std::ranges::min(own.foreign));
    for (const OwnFile& file : own.files) files_.push_back(file.path);
    const std::vector<fs::path> finished = finished_blobs(out_);
    for (const fs::path& blob : finished) note_lost_rank(blob.filename());
    // A new directory of another conversion is left alone if OUT holds a result.
    if (beside && (finished.empty() || difference(beside->run).empty())) {
      seen_.beside = std::move(beside);
      return begun(seen_.beside->run);
    }
    if (const auto there = results(finished)) return *there;
    if (const auto there = records()) return stray(*there);
    if (!seen_.ranks.empty()) return stray(There::kUnfinished);
    // A shard makes no rank beside others.
    if (!seen_.other_ranks.empty()) {
      return stray(wanted_.shard ? There::kUnfinished : There::kNothing);
    }
    for (const fs::path& file : files_) {
      if (!is_piece_of_blob(out_ / file)) return named(There::kStray, file);
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
      return There::kOtherResult;
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
    if (!is_planned && differences.empty()) differences.emplace_back(other_place(blob));
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

  // What makes a blob with the same plan another one: its place.
  [[nodiscard]] std::string_view other_place(const fs::path& blob) const {
    const bool included = *blob.lexically_relative(out_).begin() == kBlobFolder;
    if (included == wanted_.include_rest) return "the ranks";
    return included ? "--include-rest: given, now not given"
                    : "--include-rest: not given, now given";
  }

  // Journals and shards' manifests.
  std::optional<There> records() {
    const BegunRun whole = find_run(out_, {});
    const std::vector<fs::path> shards = find_shards(out_);
    if (whole.journal.bytes > 0 && (shards.empty() || wanted_.shard)) return begun(whole);
    return shards.empty() ? begun_shards() : among_shards(shards);
  }

  There among_shards(const std::vector<fs::path>& paths) {
    if (!wanted_.shard) return at(There::kShards, paths.front().parent_path());
    for (const fs::path& path : paths) {
      ShardManifest shard = read_shard_manifest(path);
      const bool own = shard.shard.index == wanted_.shard->index;
      // Without any other tensor or file, --include-rest changes only the place.
      if (shard.plan != wanted_.plan || shard.shard.count != wanted_.shard->count ||
          path.parent_path() != blob_) {
        seen_.named.what = fmt::format("a shard of another plan: {}", other_plan(shard, path));
        return at(There::kShardsOther, path);
      }
      if (shard.source.contradicts(wanted_.source)) {
        seen_.named.what = "the input changed since that shard was written";
        return at(own ? There::kOwnShardOther : There::kShardsOther, path);
      }
      if (own) seen_.own_shard = std::move(shard);
    }
    if (seen_.own_shard) return at(There::kOwnShard, blob_ / shard_manifest_name(*wanted_.shard));
    return own_run().value_or(There::kShards);
  }

  // How the plan of a shard differs from this one. A shard's manifests have its own layers only.
  [[nodiscard]] std::string other_plan(const ShardManifest& shard, const fs::path& path) const {
    const Manifest& planned = wanted_.planned.front();
    std::vector<std::string> differences;
    if (shard.shard.count != wanted_.shard->count) {
      differences.push_back(
          fmt::format("--shard: of {}, now of {}", shard.shard.count, wanted_.shard->count));
    }
    if (path.parent_path() != blob_) differences.emplace_back("--include-rest");
    Manifest then = shard.ranks.front();
    then.layers = planned.layers;
    for (const ManifestLayer& written :
         shard.ranks.front().layers) {  // some of them: by their samples
      const auto layer = std::ranges::find(then.layers, written.index, &ManifestLayer::index);
      if (layer != then.layers.end()) layer->published = written.published;
    }
    then.rest = planned.rest;
    for (std::string& difference : differing_flags(then, planned)) {
      differences.push_back(std::move(difference));
    }
    if (differences.empty()) differences.emplace_back("other layers, ranks or tensors");
    return fmt::format("{}", fmt::join(differences, "; "));
  }

  // This shard's unfinished run, if it finished a file.
  std::optional<There> own_run() {
    const BegunRun run = find_run(out_, wanted_.shard);
    if (run.journal.files.empty()) return std::nullopt;
    const bool same = begun(run) == There::kUnfinished;
    if (!same) seen_.named.what = "this shard was begun " + seen_.named.what;
    return at(same ? There::kOwnShard : There::kOwnShardOther,
              run.place / journal_name(wanted_.shard));
  }

  std::optional<There> begun_shards() {
    if (wanted_.shard) {
      if (const auto there = own_run()) return there;
    }
    const bool any = std::ranges::any_of(files_, [&](const fs::path& file) {
      return file.filename() != journal_name({}) && is_record(out_ / file);
    });
    return any ? std::optional(There::kShards) : std::nullopt;
  }

  // What differs between an unfinished run and the one that asks; empty if nothing does. A run with
  // another --include-rest keeps its journal in another place, and its plan may be this one's if
  // the input has nothing but experts.
  [[nodiscard]] std::string difference(const BegunRun& run) const {
    const JournalHead& head = run.journal;
    if (head.plan == kUnpackPlan) return "by unpack";
    if (head.plan == wanted_.plan && run.include_rest == wanted_.include_rest) {
      return head.stamp == wanted_.source.stamp ? "" : "on an input that has changed since";
    }
    const std::string flags = given_differences(head.flags, wanted_.flags);
    if (!flags.empty()) return fmt::format("with other flags: {}", flags);
    return "with another input, by another version of this program, or with files of flags that "
           "have changed";
  }

  There begun(const BegunRun& run) {
    seen_.journal = run.journal;
    seen_.named.what = difference(run);
    return seen_.named.what.empty() ? There::kUnfinished : There::kUnfinishedOther;
  }

  // There::kStray if a layer file is there that neither this conversion nor a complete rank names.
  There stray(There there) {
    const bool concerned =
        there == There::kPieces ||
        (wanted_.shard ? there == There::kShards || (there == There::kOwnShard && !seen_.own_shard)
                       : there == There::kUnfinished || there == There::kNothing);
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
      if (is_layer_file_name(file.filename().string()) && !written_.contains(in_blob)) {
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
    const bool settled = seen.there != There::kForeign && seen.there != There::kStray;
    if (!wanted.shard || settled) break;
    seen = Observer(directory, wanted).look();
  }
  return seen;
}

}  // namespace mxfp4
