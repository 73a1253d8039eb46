#include "formats/output/other_conversions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "formats/blob/blob_writer.hpp"
#include "formats/blob/journal.hpp"
#include "formats/output/conversion_output.hpp"
#include "formats/output/output_content.hpp"
#include "formats/output/plan_difference.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

namespace fs = std::filesystem;

void OtherConversions::refuse() const {
  refuse_unrecorded();
  if (request_.resume) refuse_other_place();
  for (const fs::path& blob : record_places(directory_.home())) refuse_shards(blob);
  if (request_.shard) {
    refuse_whole_conversion();
  } else {
    refuse_unfinished_shards();
  }
}

// Unlike --force, --resume and --shard replace only what an unfinished conversion left. Without its
// records, each file has to show by itself that it is a piece of a blob.
void OtherConversions::refuse_unrecorded() const {
  const auto whole = [&](const fs::path& file) { return directory_.home() / file; };
  // Looks twice, because another shard may begin or end between two look-ups.
  for (int look = 0; look < 2; ++look) {
    if (std::ranges::any_of(directory_.files(), is_record, whole)) return;
  }
  const std::vector<fs::path> files = directory_.files();
  const auto foreign = std::ranges::find_if_not(files, is_piece_of_blob, whole);
  if (foreign == files.end()) return;
  throw Error::output(fmt::format("{}: holds {}, but no record of an unfinished conversion",
                                  request_.output.string(), foreign->string()))
      .hint(request_.shard ? "choose an empty directory"
                           : "choose another directory; --force replaces what this program wrote");
}

// Refuses to resume a conversion that was begun with another input or other flags.
void OtherConversions::refuse_begun(const JournalContent& found) const {
  if (found.plan == plan_ && found.stamp == source_.stamp) return;
  const std::string flags = given_differences(found.flags, request_.flags);
  const std::string begun =
      fmt::format("--resume: {}: the unfinished conversion was begun", request_.output.string());
  if (found.plan == plan_) {
    throw Error::usage(begun + " on an input that has changed since").hint("--force starts over");
  }
  if (flags.empty()) {
    throw Error::usage(begun +
                       " with another input, by another version of this program, or with "
                       "files of flags that have changed")
        .hint("--force starts over");
  }
  throw Error::usage(fmt::format("{} with other flags: {}", begun, flags))
      .hint("give the same flags; --force starts over");
}

void OtherConversions::refuse_shards(const fs::path& blob) const {
  for (const fs::path& path : find_shard_manifests(blob)) {
    if (!request_.shard) {
      throw Error::output(fmt::format("{}: holds shards of a conversion", blob.string()))
          .hint("finalize puts them together; --force replaces them");
    }
    const ShardManifest other = read_shard_manifest(path);
    // Without any other tensor or file, --include-rest changes the place alone.
    if (other.plan != plan_ || other.shard.count != request_.shard->count || blob != blob_) {
      throw Error::output(fmt::format("{}: a shard of another plan", path.string()))
          .hint("all shards need the same input, flags and program");
    }
    const bool replaced = request_.force && other.shard.index == request_.shard->index;
    if (!replaced && other.source.contradicts(source_)) {
      throw Error::output(
          fmt::format("{}: the input changed since that shard was written", path.string()))
          .hint("run that shard again, with --force");
    }
  }
}

// Refuses to resume a conversion that was begun with another --include-rest, whose journal lies in
// another place.
void OtherConversions::refuse_other_place() const {
  const std::string name = journal_name(request_.shard);
  if (read_journal(blob_ / name).bytes > 0) return;
  for (const fs::path& blob : record_places(directory_.home())) {
    JournalContent begun = read_journal(blob / name);
    if (begun.bytes == 0) continue;
    begun.plan.clear();  // it may be this plan's, if the input has nothing but experts
    refuse_begun(begun);
  }
}

// Refuses to write a shard beside a whole conversion that did not finish. What another shard began is
// that shard's: its own --resume refuses it.
void OtherConversions::refuse_whole_conversion() const {
  for (const fs::path& blob : record_places(directory_.home())) {
    if (read_journal(blob / journal_name({})).bytes == 0) continue;
    throw Error::output(fmt::format("{}: holds an unfinished conversion that is no shard",
                                    request_.output.string()))
        .hint("choose another directory; without --shard, --resume goes on here");
  }
}

// Refuses to write a whole conversion over what a shard began: it would make that shard's files again,
// though --resume keeps what is complete, and the other shards may be about to start.
void OtherConversions::refuse_unfinished_shards() const {
  for (const fs::path& file : directory_.files()) {
    const fs::path path = directory_.home() / file;
    if (!is_shard_journal(path.filename().string()) || !is_record(path)) continue;
    throw Error::output(fmt::format("{}: holds an unfinished shard of a conversion: {}",
                                    request_.output.string(), file.string()))
        .hint("with its --shard, --resume goes on here; --force replaces it");
  }
}

// Refuses layer files that this conversion's manifests will not name.
void OtherConversions::refuse_layers(const std::vector<Manifest>& planned) const {
  std::set<std::string> wanted;
  for (const Manifest& manifest : planned) {
    for (const ManifestLayer& layer : manifest.layers) {
      wanted.insert(name_in_blob(manifest.rank, layer.file));
    }
  }
  // The input's other files may have any names.
  for (const ManifestFile& file : planned.front().rest) wanted.insert("../" + file.name);
  const fs::path& home = directory_.home();
  for (const fs::path& file : directory_.files()) {
    const std::string name = file.filename().string();
    const std::string in_blob = (home / file).lexically_relative(blob_).string();
    if (!name.starts_with("layer-") || wanted.contains(in_blob)) continue;
    throw Error::output(fmt::format("{}: holds {}, which this conversion does not write",
                                    request_.output.string(), file.string()))
        .hint(request_.shard ? "choose another directory" : "--force replaces an earlier result");
  }
}

}  // namespace mxfp4
