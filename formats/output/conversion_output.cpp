#include "formats/output/conversion_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <new>
#include <set>
#include <system_error>
#include <utility>

#include "formats/blob/blob_check.hpp"
#include "formats/blob/blob_writer.hpp"
#include "formats/blob/rest_check.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/os/atomic_file.hpp"
#include "formats/output/finished_blob.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

Asked asked_of(const OutputRequest& request) {
  if (request.shard) {
    if (request.force) return Asked::kShardForce;
    return request.resume ? Asked::kShardResume : Asked::kShard;
  }
  if (request.force) return Asked::kForce;
  return request.resume ? Asked::kResume : Asked::kPlain;
}

// The directory above `path` that may not be searched, or `path`.
fs::path searched_until(const fs::path& path) {
  std::error_code error;
  fs::path at;
  for (const fs::path& part : fs::absolute(path, error)) {
    at /= part;
    (void)fs::status(at / ".", error);
    if (error == std::errc::permission_denied) return at;
  }
  return path;
}

// Describes the source, and the files beside it that are copied, by sizes, times and inodes. All
// but the sizes differ between machines, so manifests do not have them.
SourceSeen look_at(const OutputRequest& request, const Source& source) {
  SourceSeen seen;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> seen.machine;
  std::error_code error;
  // An address is the same from every directory.
  const fs::path place =
      source.is_far() ? request.input : fs::weakly_canonical(request.input, error);
  if (error == std::errc::permission_denied) {
    throw Error::input(fmt::format("cannot be searched: {}", error.message()))
        .in_file(searched_until(request.input).string())
        .hint("start the program where every directory above may be searched");
  }
  if (error) throw Error::input(error.message()).in_file(request.input.string());
  seen.place = checksum_of(place.string());
  std::string text;
  const auto add = [&](const FileStatus& file) {
    text += fmt::format(";{};{};{};{};{}", file.path.filename().string(), file.size, file.mtime_ns,
                        file.ctime_ns, file.inode);
  };
  for (const FileStatus& file : source.files()) add(file);
  for (const FileStatus& file : request.side_files) add(file);
  seen.stamp = checksum_of(text);
  return seen;
}

}  // namespace

ConversionOutput::ConversionOutput(OutputRequest request, const std::vector<Manifest>& planned,
                                   const Source& source)
    : request_(std::move(request)),
      directory_(request_.output, request_.inputs, request_.shard.has_value(), request_.look_only),
      wanted_{.planned = planned,
              .include_rest = request_.include_rest,
              .shard = request_.shard,
              .plan = plan_identity(planned),
              .source = look_at(request_, source),
              .flags = request_.flags},
      seen_(observe(directory_, wanted_)) {
  const Asked asked = asked_of(request_);
  const Answer& answer = answer_to(seen_.there, asked);
  if (answer.does == Does::kRefuse) {
    if (!seen_.cause || asked == Asked::kPlain) throw refusal(answer, seen_.named);
    if (seen_.cause->hint_text() == kNewerProgram) throw Error(*seen_.cause);
    throw seen_.cause->hint(std::string(answer.hint));
  }
  carry_out(answer.does);
}

Directory ConversionOutput::blob() const {
  return home().folder(blob_place(".", request_.include_rest));
}

fs::path ConversionOutput::blob_path() const {
  return blob_place(home().path(), request_.include_rest);
}

ConversionOutput::~ConversionOutput() {
  const bool keeps = finished_any_ || (resumed_ && !seen_.journal.files.empty());
  if (journal_ && !keeps) journal_->remove();
}

void ConversionOutput::carry_out(Does does) {
  const bool is_complete = seen_.there == There::kResult || seen_.own_shard;
  const bool accepts = does == Does::kContinue && is_complete;
  resumed_ = does == Does::kContinue && !is_complete && seen_.journal.bytes > 0;
  if (does == Does::kReplace && !seen_.lost_rank.empty()) {
    throw refusal(kKeepsRank, {request_.output.string(), {}, seen_.lost_rank});
  }
  const auto begun = resumed_ ? seen_.beside : std::nullopt;
  if (does == Does::kReplace || begun) directory_.replace(request_.between, begun);
  if (accepts) accept(seen_.own_shard ? seen_.own_shard->ranks : seen_.ranks);
  if (resumed_) earlier_ = seen_.journal;
  if (!accepts && does != Does::kReplace) take_over_ranks();
  if (!complete_) open_journal();
}

// Files of a complete result that are missing or damaged will be made again; warnings about the
// data are taken over.
void ConversionOutput::accept(const std::vector<Manifest>& manifests) {
  directory_.keep();
  FinishedBlob result = look_at_finished(blob_path(), manifests, /*indexed=*/!seen_.own_shard,
                                         request_.check, request_.between);
  complete_ = result.damages.empty();
  if (complete_) remove_leftovers();
  looked_at_ = true;
  damages_ = std::move(result.damages);
  lost_ = std::move(result.lost);
  earlier_ = std::move(result.whole);
  for (const Manifest& manifest : manifests) add_warnings(manifest);
  if (seen_.own_shard) earlier_.warnings = seen_.own_shard->warnings;
}

void ConversionOutput::add_warnings(const Manifest& manifest) {
  const std::vector<std::string>& planned = wanted_.planned.front().warnings;
  for (const std::string& warning : manifest.warnings) {
    if (std::ranges::find(planned, warning) == planned.end()) earlier_.warnings.insert(warning);
  }
}

// Files of ranks that are complete are kept if their checksums hold. The model directory's files
// belong to all ranks: this run has to make the same ones.
void ConversionOutput::take_over_ranks() {
  for (const Manifest& manifest : seen_.ranks) {
    for (FinishedFile& file : files_of(manifest)) earlier_.files.emplace(file.name, file);
    add_warnings(manifest);
  }
  for (const Manifest& manifest : seen_.other_ranks) {
    for (FinishedFile& file : rest_of(manifest)) lost_.emplace(file.name, file);
  }
}

// Removes what runs that are over left: temporaries, and journals that record nothing, or all
// journals if the result is complete. A shard removes only its own journal: other shards, which may
// still run, have theirs.
void ConversionOutput::remove_leftovers() {
  if (request_.shard && !complete_) return;
  for (const fs::path& file : directory_.files()) {
    const fs::path path = home().path() / file;
    const bool left = request_.shard
                          ? file.filename() == journal_name(request_.shard)
                          : is_journal_or_temporary(file) && (complete_ || !is_record(path));
    if (!left) continue;
    try {
      if (request_.look_only) {
        require_removable(path);
      } else {
        home().remove(file);
      }
    } catch (const Error& error) {
      if (!complete_) throw;
      leftover_ = fmt::format("{}; the result is complete without it", error.what());
      return;
    }
  }
}

void ConversionOutput::open_journal() {
  if (request_.look_only) {
    directory_.require_writable();
    return;
  }
  journal_ = std::make_unique<Journal>(blob(), journal_name(request_.shard));
  try {
    if (resumed_) {
      journal_->resume(seen_.journal);
    } else {
      JournalHead head;
      head.plan = wanted_.plan;
      head.stamp = wanted_.source.stamp;
      head.flags = request_.flags;
      for (const Manifest& manifest : wanted_.planned) {
        head.layer_files += static_cast<int64_t>(manifest.layers.size());
      }
      for (const ManifestFile& file : wanted_.planned.front().rest) head.rest.push_back(file.name);
      journal_->begin(head);
    }
  } catch (const Error&) {
    if (!resumed_) journal_->remove();  // it records nothing, and an empty OUT shall stay empty
    throw;
  }
  remove_leftovers();
}

std::optional<FinishedFile> ConversionOutput::kept(const std::string& name) const {
  const auto found = earlier_.files.find(name);
  if (found == earlier_.files.end()) return std::nullopt;
  if (looked_at_) return found->second;
  try {
    const FinishedFile& file = found->second;
    require_bytes(blob_path() / name, file.size, &file.xxh3_128, ReadFrom::kCache,
                  request_.between);
  } catch (const Error&) {
    return std::nullopt;  // gone, changed, or not readable
  }
  return found->second;
}

std::optional<FinishedFile> ConversionOutput::kept_layer(const std::string& name, Manifest rank,
                                                         ManifestLayer layer, int threads) const {
  const auto found = earlier_.files.find(name);
  if (found == earlier_.files.end()) return std::nullopt;
  const FinishedFile& record = found->second;
  if (record.tensors.size() != layer.tensors.size()) return std::nullopt;
  if (looked_at_) return record;
  layer.size = record.size;
  layer.xxh3_128 = record.xxh3_128;
  for (size_t i = 0; i < layer.tensors.size(); ++i) layer.tensors[i].xxh3_128 = record.tensors[i];
  rank.layers = {std::move(layer)};
  const auto between = [&](int64_t /*bytes*/) {
    if (request_.between) request_.between();
  };
  try {
    const fs::path home = (blob_path() / name).parent_path();
    if (!check_layer_files(home, rank, threads, between).empty()) return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;  // not readable
  }
  return record;
}

void ConversionOutput::finished(const FinishedFile& file,
                                const std::vector<std::string>& warnings) {
  const auto lost = lost_.find(file.name);
  if (lost != lost_.end() && lost->second.xxh3_128 != file.xxh3_128) {
    throw Error::usage(
        fmt::format("{}: its bytes differ from those in the manifest: the input has changed since",
                    (blob_path() / file.name).lexically_normal().string()))
        .hint(request_.shard              ? "every shard has to be converted again, with --force"
              : seen_.other_ranks.empty() ? "--force converts everything again"
                                          : "choose another directory");
  }
  // The shard that an earlier run completed is complete no more once a file gets other bytes.
  if (request_.shard && !finished_any_ && !looked_at_)
    blob().remove(shard_manifest_name(*request_.shard));
  finished_any_ = true;
  journal_->add(file, warnings);
}

std::vector<std::string> ConversionOutput::commit(std::vector<Manifest> manifests,
                                                  const std::vector<std::string>& warnings) {
  std::set<std::string> all = journal_->warnings();
  all.insert(warnings.begin(), warnings.end());
  all.insert(earlier_.warnings.begin(), earlier_.warnings.end());
  finished_any_ = true;
  directory_.require_in_place();
  std::vector<std::string> said(all.begin(), all.end());
  said.reserve(said.size() + 2);
  if (request_.shard) {
    std::vector<int64_t> layers;  // numbers
    for (const ManifestLayer& layer : wanted_.planned.front().layers) layers.push_back(layer.index);
    const ShardManifest manifest{*request_.shard,   wanted_.plan, wanted_.source,
                                 std::move(layers), all,          std::move(manifests)};
    write_summed(blob(), shard_manifest_name(*request_.shard), write_shard_manifest(manifest),
                 request_.read_back);
  } else {
    for (Manifest& manifest : manifests) {
      manifest.warnings.insert(manifest.warnings.end(), all.begin(), all.end());
    }
    write_manifests(blob(), manifests, request_.read_back);
  }
  if (directory_.replaces()) journal_->ready();
  if (std::string left = directory_.publish(); !left.empty()) said.push_back(std::move(left));
  // The result is there, whatever fails from here on.
  try {
    journal_->moved(blob());
    if (std::string note = journal_->remove(); !note.empty()) said.push_back(std::move(note));
  } catch (const std::bad_alloc&) {
    said.emplace_back("out of memory: the journal of this run remains");
  } catch (const Error& error) {
    said.push_back(fmt::format("{}; the journal of this run remains", error.what()));
  }
  return said;
}

}  // namespace mxfp4
