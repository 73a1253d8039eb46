#include "formats/output/observe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/plan_difference.hpp"
#include "formats/remote/files_at.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

bool same_place(const fs::path& one, const fs::path& other) {
  return is_address(one) ? (one / "").lexically_normal() == (other / "").lexically_normal()
                         : identity_of(one) == identity_of(other);
}

class Observer {
 public:
  Observer(const Sibling& sibling, const Wanted& wanted)
      : wanted_(wanted),
        out_(sibling.out()),
        beside_(sibling_of(out_)),
        blob_(blob_place(out_, wanted.include_rest)) {
    seen_.named = {out_.string(), out_.string(), ""};
    seen_.occupied = sibling.occupied();
  }

  Seen look() {
    seen_.there = what_is_there();
    if (seen_.there == There::kUnfinished || seen_.there == There::kUnfinishedOther) {
      seen_.holds = fmt::format("an unfinished conversion, {} of {} layer files complete",
                                finished_layers(seen_.journal), layer_files(seen_.journal.planned));
    } else if (seen_.occupied) {
      seen_.holds = fmt::format("a complete result of {} layer files", layers_);
    }
    return std::move(seen_);
  }

 private:
  There what_is_there() {
    const There in_out = seen_.in_out = seen_.occupied ? look_in_out() : There::kNothing;
    if (in_out == There::kForeign) return in_out;
    const Named named = seen_.named;
    const There beside = look_beside();
    // A killed run may have put its result in place already, and what it replaced beside it.
    std::error_code error;
    const bool built = is_address(beside_) || fs::exists(beside_ / kResultFolder, error) || error;
    seen_.over = !built || (seen_.journal.ready && in_out == There::kResult);
    if (seen_.over) seen_.journal = {};
    if (beside == There::kUnfinished && !seen_.over) return beside;
    if (seen_.over || in_out == There::kResult || in_out == There::kOtherResult) {
      seen_.others = !seen_.over && beside != There::kNothing;
      seen_.named = named;
      if (in_out == There::kResult || in_out == There::kOtherResult) return in_out;
    } else if (beside != There::kNothing) {
      return beside;
    }
    // A shard makes no rank beside others.
    const bool ranks = !seen_.ranks.empty() || !seen_.other_ranks.empty();
    return ranks && wanted_.shard ? There::kOtherWay : in_out;
  }

  There at(There there, const fs::path& path) {
    seen_.named.at = path.string();
    return there;
  }

  There look_in_out() {
    std::vector<fs::path> finished;
    for (const fs::path& blob : find_blobs(out_)) {
      if (!exists_at(blob / kManifestName)) continue;
      finished.push_back(blob);
      note_lost_rank(blob.filename());
    }
    if (finished.empty()) {
      const std::vector<std::string> names = in_file(out_.string(), [&] { return names_at(out_); });
      if (!names.empty()) seen_.named.what = *std::ranges::min_element(names);
      return There::kForeign;
    }
    std::vector<Manifest> manifests;
    try {
      for (const fs::path& blob : finished) manifests.push_back(read_manifest(blob));
    } catch (const Error& error) {
      seen_.cause = error;
      seen_.named.what = error.what();
      return There::kOtherResult;
    }
    layers_ = layer_files(manifests);
    for (size_t i = 0; i < finished.size(); ++i) {
      if (wanted_.planned.empty() || !belongs(finished[i], std::move(manifests[i]))) {
        return at(There::kOtherResult, finished[i]);
      }
    }
    if (seen_.ranks.empty()) return There::kNothing;
    return seen_.ranks.size() == wanted_.planned.size() ? There::kResult : There::kUnfinished;
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

  // Whether the complete rank at `blob` is one of this conversion, made by this run or by others.
  bool belongs(const fs::path& blob, Manifest manifest) {
    const auto planned = std::ranges::find_if(wanted_.planned, [&](const Manifest& one) {
      return same_place(blob_ / rank_directory(one.rank), blob);
    });
    const bool is_planned = planned != wanted_.planned.end();
    const Manifest& then = is_planned ? *planned : wanted_.planned.front();
    std::vector<std::string> differences = differing_flags(manifest, then);
    const fs::path place = blob_ / rank_directory(manifest.rank);
    const bool other_rank = !is_planned && manifest.rank.num_ranks == then.rank.num_ranks &&
                            same_place(place, blob) &&
                            differences == std::vector<std::string>{"the ranks"};
    if (!is_planned && differences.empty()) {
      const bool included = *blob.lexically_relative(out_).begin() == kBlobFolder;
      differences.emplace_back(included == wanted_.include_rest ? "the ranks"
                               : included ? "--include-rest: given, now not given"
                                          : "--include-rest: not given, now given");
    }
    if (!differences.empty() && !other_rank) {
      seen_.named.what = fmt::format("{}", fmt::join(differences, "; "));
      return false;
    }
    seen_.named.what = rank_directory(manifest.rank).string();
    (other_rank ? seen_.other_ranks : seen_.ranks).push_back(std::move(manifest));
    return true;
  }

  // The journals of unfinished runs.
  There look_beside() {
    std::vector<JournalContent> journals = read_journals(beside_);
    if (journals.empty()) return There::kNothing;
    const bool whole = !journals.front().shard;
    seen_.named.at = beside_.string();
    if (wanted_.planned.empty()) return There::kUnfinishedOther;
    if (whole == wanted_.shard.has_value()) return There::kOtherWay;
    There there = There::kNothing;
    std::string what;
    for (JournalContent& journal : journals) {
      seen_.named.at = (beside_ / journal_name(journal.shard)).string();
      seen_.named.what = difference(journal);
      const bool own = whole || (journal.shard->index == wanted_.shard->index &&
                                 journal.shard->count == wanted_.shard->count);
      if (!seen_.named.what.empty() && (whole || !own)) return There::kUnfinishedOther;
      if (!own) continue;
      if (whole || journal.ready || !journal.files.empty()) {
        there = seen_.named.what.empty() ? There::kUnfinished : There::kOwnShardOther;
      }
      what = seen_.named.what;
      seen_.journal = std::move(journal);
    }
    seen_.named.what = what;
    seen_.named.at = (beside_ / journal_name(wanted_.shard)).string();
    return there;
  }

  // What differs between an unfinished run and the one that asks; empty if nothing does.
  [[nodiscard]] std::string difference(const JournalHead& run) const {
    if (run.shard && run.shard->count != wanted_.shard->count) {
      return fmt::format("as one of {} shards, now of {}", run.shard->count, wanted_.shard->count);
    }
    if (run.plan == wanted_.plan) {
      // Shards may read copies on several machines.
      const bool changed = run.shard ? run.source.contradicts(wanted_.source)
                                     : run.source.stamp != wanted_.source.stamp;
      return changed ? "on an input that has changed since" : "";
    }
    std::vector<std::string> differences;
    if (run.planned.size() != wanted_.planned.size()) {
      differences.emplace_back("the ranks");
    } else {
      for (size_t i = 0; i < run.planned.size() && differences.empty(); ++i) {
        differences = differing_flags(run.planned[i], wanted_.planned[i]);
      }
    }
    return fmt::format("otherwise: {}", fmt::join(differences, "; "));
  }

  const Wanted& wanted_;
  const fs::path& out_;
  fs::path beside_;
  fs::path blob_;
  int64_t layers_ = 0;  // in OUT's manifests
  Seen seen_;
};

}  // namespace

Seen observe(const Sibling& sibling, const Wanted& wanted) {
  return Observer(sibling, wanted).look();
}

fs::path blob_place(const fs::path& home, bool include_rest) {
  return include_rest ? home / kBlobFolder : home;
}

int64_t finished_layers(const JournalContent& journal) {
  return std::ranges::count_if(journal.files,
                               [](const auto& entry) { return !entry.second.tensors.empty(); });
}

int64_t layer_files(const std::vector<Manifest>& manifests) {
  int64_t count = 0;
  for (const Manifest& manifest : manifests) count += std::ssize(manifest.layers);
  return count;
}

}  // namespace mxfp4
