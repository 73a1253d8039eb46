#include "formats/output/conversion_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <system_error>

#include "formats/blob/blob_check.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/blob/blob_writer.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/os/atomic_file.hpp"
#include "formats/os/file.hpp"
#include "formats/os/file_identity.hpp"
#include "formats/os/mapped_file.hpp"
#include "formats/output/finished_blob.hpp"
#include "formats/output/other_conversions.hpp"
#include "formats/output/output_content.hpp"
#include "formats/output/plan_difference.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

OutputMode mode_of(const OutputRequest& request) {
  if (request.resume || request.shard) return OutputMode::kJoin;
  return request.force ? OutputMode::kReplace : OutputMode::kNew;
}

// Describes the source, and the files beside it that are copied, by sizes and modification times.
// The latter differ between machines, so manifests do not have them.
SourceSeen look_at(const OutputRequest& request, const Source& source) {
  SourceSeen seen;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> seen.machine;
  std::error_code error;
  seen.place = checksum_of(fs::weakly_canonical(request.input, error).string());
  std::string text;
  const auto add = [&](const FileStatus& file) {
    text += fmt::format(";{};{};{}", file.path.filename().string(), file.size, file.mtime_ns);
  };
  for (const FileStatus& file : source.files()) add(file);
  for (const fs::path& file : request.side_files) {
    add(in_context(file.string(), [&] { return describe_file(file); }));
  }
  seen.stamp = checksum_of(text);
  return seen;
}

// The planned manifest of the rank whose directory is `blob`; null if it is no rank's.
const Manifest* planned_for(const fs::path& blob, const fs::path& home,
                            const std::vector<Manifest>& planned) {
  const auto found = std::ranges::find_if(planned, [&](const Manifest& manifest) {
    return identity_of(home / rank_directory(manifest.rank)) == identity_of(blob);
  });
  return found == planned.end() ? nullptr : &*found;
}

// If the manifest is damaged, nothing of the result can be kept: the error's hint says how to make
// the result again.
Manifest read_manifest_of_result(const fs::path& blob, bool shard) {
  try {
    return read_manifest(blob);
  } catch (Error& error) {
    error.hint(shard ? "remove the damaged result first" : "--force makes the result again");
    throw;
  }
}

}  // namespace

ConversionOutput::ConversionOutput(OutputRequest request, const std::vector<Manifest>& planned,
                                   const Source& source)
    : request_(std::move(request)),
      directory_(request_.output, mode_of(request_), request_.shard.has_value(), request_.between,
                 request_.look_only),
      blob_(blob_in(directory_.home())),
      plan_(plan_identity(planned)),
      source_(look_at(request_, source)) {
  for (const ManifestLayer& layer : planned.front().layers) layers_.push_back(layer.index);
  if (request_.resume && !request_.shard && !request_.look_only) look_for_replacement();
  if (!directory_.replaces() && (request_.resume || request_.shard)) {
    look_for_manifests(planned);
    if (complete_ && !request_.resume) {
      throw Error::output(fmt::format("{}: complete already", request_.output.string()))
          .hint("--resume accepts it; a shard replaces no result, so remove it first");
    }
    if (!complete_ && damages_.empty()) {
      others().refuse();
      if (request_.shard) look_for_own_shard();
    }
  }
  if (!complete_) open_journal(planned);
}

ConversionOutput::~ConversionOutput() {
  if (journal_ && !finished_any_ && (looked_at_ || earlier_.files.empty())) journal_->remove();
}

OtherConversions ConversionOutput::others() const {
  return {request_, directory_, blob_, plan_, source_};
}

fs::path ConversionOutput::blob_in(const fs::path& home) const {
  return request_.include_rest ? home / kBlobFolder : home;
}

// Goes on with a replacement that an earlier --force began. But if OUT holds a complete result and
// the replacement is of another conversion, it is left alone: OUT's result is looked at.
void ConversionOutput::look_for_replacement() {
  for (const fs::path& folder : Replacement::folders(request_.output)) {
    for (const fs::path& blob : record_places(folder)) {
      const JournalContent begun = read_journal(blob / journal_name({}));
      const bool same =
          begun.plan == plan_ && begun.stamp == source_.stamp && blob == blob_in(folder);
      if (begun.bytes == 0 || same) continue;
      std::error_code ignored;
      if (fs::exists(blob_ / kManifestName, ignored)) return;
    }
  }
  if (directory_.resume_replacement()) blob_ = blob_in(directory_.home());
}

void ConversionOutput::look_for_manifests(const std::vector<Manifest>& planned) {
  std::vector<Manifest> found;
  for (const fs::path& blob : all_blobs(request_.output)) {
    std::error_code ignored;
    if (!fs::exists(blob / kManifestName, ignored)) continue;
    Manifest manifest = read_manifest_of_result(blob, request_.shard.has_value());
    const Manifest* plan = planned_for(blob, blob_, planned);
    std::vector<std::string> differences =
        differing_flags(manifest, plan == nullptr ? planned.front() : *plan);
    if (plan == nullptr && differences.empty()) differences.emplace_back("the ranks");
    if (!differences.empty()) {
      const std::string text = fmt::format("{}: holds a complete result of another conversion: {}",
                                           blob.string(), fmt::join(differences, "; "));
      if (request_.shard) {
        throw Error::output(text).hint(
            "choose another directory; a shard replaces no result, so remove it first");
      }
      throw Error::usage(text).hint("choose another directory; --force replaces it");
    }
    found.push_back(std::move(manifest));
  }
  complete_ = found.size() == planned.size();
  if (!complete_) return;
  directory_.keep();
  if (request_.resume) look_at_result(found, planned);
  if (!request_.shard) remove_records();
}

// Damaged files will be made again; warnings about the data are taken over from the manifests.
void ConversionOutput::look_at_result(const std::vector<Manifest>& found,
                                      const std::vector<Manifest>& planned) {
  FinishedBlob result =
      look_at_finished(blob_, found, /*indexed=*/true, request_.check, request_.between);
  if (result.damages.empty()) return;
  complete_ = false;
  looked_at_ = true;
  damages_ = std::move(result.damages);
  lost_ = std::move(result.lost);
  earlier_ = std::move(result.whole);
  for (const Manifest& manifest : found) {
    earlier_.warnings.insert(manifest.warnings.begin(), manifest.warnings.end());
  }
  for (const std::string& warning : planned.front().warnings) earlier_.warnings.erase(warning);
}

// Removes what a run that was killed after its last manifest left: its journal, and perhaps
// temporaries. If they cannot be removed, the result is complete all the same.
void ConversionOutput::remove_records() {
  for (const fs::path& file : directory_.files()) {
    if (!is_journal_or_temporary(file)) continue;
    const fs::path path = directory_.home() / file;
    try {
      if (request_.look_only) {
        require_removable(path);
      } else {
        remove_file(path);
      }
    } catch (const Error& error) {
      leftover_ = fmt::format("{}; the result is complete without it", error.what());
      return;
    }
  }
}

void ConversionOutput::look_for_own_shard() {
  const fs::path path = blob_ / shard_manifest_name(*request_.shard);
  std::error_code ignored;
  if (request_.force || !fs::exists(path, ignored)) return;
  if (!request_.resume) {
    throw Error::output(fmt::format("{}: this shard is complete already", path.string()))
        .hint("--resume accepts it, --force writes it again");
  }
  const ShardManifest own = read_shard_manifest(path);
  FinishedBlob result =
      look_at_finished(blob_, own.ranks, /*indexed=*/false, request_.check, request_.between);
  complete_ = result.damages.empty();
  if (complete_) return;
  looked_at_ = true;
  damages_ = std::move(result.damages);
  lost_ = std::move(result.lost);
  earlier_ = std::move(result.whole);
  earlier_.warnings = own.warnings;
}

void ConversionOutput::open_journal(const std::vector<Manifest>& planned) {
  const fs::path path = blob_ / journal_name(request_.shard);
  JournalContent found = read_journal(path);
  const bool resumed = request_.resume && found.bytes > 0 && !looked_at_;
  if (resumed) others().refuse_begun(found);
  if (request_.shard && !request_.resume && !request_.force && !found.files.empty()) {
    throw Error::output(
        fmt::format("{}: an earlier run of this shard did not finish", path.string()))
        .hint("--resume goes on, --force starts again");
  }
  others().refuse_layers(planned);
  if (request_.look_only) {
    directory_.require_writable();
    if (resumed) earlier_ = std::move(found);
    return;
  }
  make_directories(blob_);
  journal_ = std::make_unique<Journal>(path);
  try {
    if (resumed) {
      journal_->resume(found);
      earlier_ = std::move(found);
    } else {
      JournalHead head;
      head.plan = plan_;
      head.stamp = source_.stamp;
      head.flags = request_.flags;
      for (const Manifest& manifest : planned) {
        head.layer_files += static_cast<int64_t>(manifest.layers.size());
      }
      for (const ManifestFile& file : planned.front().rest) head.rest.push_back(file.name);
      journal_->begin(head);
    }
  } catch (const Error&) {
    if (!resumed) journal_->remove();  // it records nothing, and an empty OUT shall stay empty
    throw;
  }
  remove_leftovers();
}

// Removes what runs that are over left: temporaries, and journals that record nothing.
void ConversionOutput::remove_leftovers() const {
  if (request_.shard) return;  // they may be those of other shards that still run
  for (const fs::path& file : directory_.files()) {
    const fs::path path = directory_.home() / file;
    if (is_journal_or_temporary(file) && !is_record(path)) remove_file(path);
  }
}

std::optional<FinishedFile> ConversionOutput::kept(const std::string& name) const {
  const auto found = earlier_.files.find(name);
  if (found == earlier_.files.end()) return std::nullopt;
  if (looked_at_) return found->second;
  try {
    const fs::path path = blob_ / name;
    if (describe_file(path).size != found->second.size) return std::nullopt;
    if (checksum_of_mapped(MappedFile(path).bytes(), request_.between) != found->second.xxh3_128)
      return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;  // gone, or not readable
  }
  return found->second;
}

std::string ConversionOutput::holds() const {
  return content_text(request_.output, blob_ / journal_name(request_.shard));
}

void ConversionOutput::finished(const FinishedFile& file,
                                const std::vector<std::string>& warnings) {
  const auto lost = lost_.find(file.name);
  if (lost != lost_.end() && lost->second.xxh3_128 != file.xxh3_128) {
    throw Error::usage(
        fmt::format("{}: its bytes differ from those in the manifest: the input has changed since",
                    (blob_ / file.name).lexically_normal().string()))
        .hint(request_.shard ? "every shard has to be converted again, with --force"
                             : "--force converts everything again");
  }
  // The shard that an earlier run completed is complete no more once a file gets other bytes.
  if (request_.shard && !finished_any_ && !looked_at_)
    remove_file(blob_ / shard_manifest_name(*request_.shard));
  finished_any_ = true;
  journal_->add(file, warnings);
}

std::vector<std::string> ConversionOutput::commit(std::vector<Manifest> manifests,
                                                  const std::vector<std::string>& warnings) {
  std::set<std::string> all = journal_->warnings();
  all.insert(warnings.begin(), warnings.end());
  all.insert(earlier_.warnings.begin(), earlier_.warnings.end());
  finished_any_ = true;
  if (request_.shard) {
    const ShardManifest manifest{*request_.shard, plan_, source_,
                                 layers_,         all,   std::move(manifests)};
    write_file_atomically(blob_ / shard_manifest_name(*request_.shard),
                          write_shard_manifest(manifest));
  } else {
    for (Manifest& manifest : manifests) {
      manifest.warnings.insert(manifest.warnings.end(), all.begin(), all.end());
    }
    write_manifests(blob_, manifests);
  }
  if (directory_.replaces()) journal_->ready();
  const std::string left = directory_.publish();
  blob_ = blob_in(request_.output);
  journal_->moved(blob_ / journal_name(request_.shard));
  journal_->remove();
  std::vector<std::string> said(all.begin(), all.end());
  if (!left.empty()) said.push_back(left);
  return said;
}

}  // namespace mxfp4
