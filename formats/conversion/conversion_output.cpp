#include "formats/conversion/conversion_output.hpp"

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
#include "formats/os/mapped_file.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

OutputMode mode_of(const OutputRequest& request) {
  if (request.resume || request.shard) return OutputMode::kJoin;
  return request.force ? OutputMode::kReplace : OutputMode::kNew;
}

std::string journal_name(const std::optional<Shard>& shard) {
  return shard ? fmt::format("{}shard-{:03}-of-{:03}.progress", kJournalPrefix, shard->index,
                             shard->count)
               : fmt::format("{}progress", kJournalPrefix);
}

// Manifests do not say mtimes, which differ between machines.
SourceSeen look_at(const fs::path& path, const Source& source) {
  SourceSeen seen;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> seen.machine;
  std::error_code error;
  seen.place = checksum_of(fs::weakly_canonical(path, error).string());
  std::string text;
  for (const FileStatus& file : source.files()) {
    text += fmt::format(";{};{};{}", file.path.filename().string(), file.size, file.mtime_ns);
  }
  seen.stamp = checksum_of(text);
  return seen;
}

// The blobs in OUT, finished or not, wherever they may lie.
std::vector<fs::path> all_blobs(const fs::path& output) {
  std::vector<fs::path> found = find_blobs(output);
  for (const fs::path& blob : find_blobs(output / kBlobFolder)) {
    if (std::ranges::find(found, blob) == found.end()) found.push_back(blob);
  }
  return found;
}

// Whether the file says that a conversion was begun in its directory, or was being removed there.
bool is_record(const fs::path& path) {
  const std::string name = path.filename().string();
  if (is_shard_manifest(name)) return true;
  return name.starts_with(kJournalPrefix) && read_journal(path).bytes > 0;
}

bool is_journal_or_temporary(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(kJournalPrefix) || is_temporary(name);
}

// Whether the file is a piece of a blob, which is no result without its manifest.
bool is_piece_of_blob(const fs::path& path) {
  if (is_journal_or_temporary(path)) return true;
  return path.filename() == kIndexName ? is_blob_index(path) : is_packed_layer(path);
}

// Whether `blob` is, data aside, the result that one of the planned ranks would have.
bool is_result_of(const fs::path& blob, const fs::path& home,
                  const std::vector<Manifest>& planned) {
  const Manifest found = read_manifest(blob);
  return std::ranges::any_of(planned, [&](const Manifest& manifest) {
    std::error_code ignored;
    return fs::equivalent(home / rank_directory(manifest.rank), blob, ignored) &&
           write_manifest(without_data(manifest)) == write_manifest(without_data(found));
  });
}

}  // namespace

ConversionOutput::ConversionOutput(OutputRequest request, const std::vector<Manifest>& planned,
                                   const Source& source)
    : request_(std::move(request)),
      directory_(request_.output, mode_of(request_), request_.shard.has_value()),
      blob_(request_.include_rest ? request_.output / kBlobFolder : request_.output),
      plan_(plan_identity(planned)),
      source_(look_at(request_.input, source)) {
  for (const ManifestLayer& layer : planned.front().layers) layers_.push_back(layer.index);
  if (request_.resume || request_.shard) {
    look_for_manifests(planned);
    if (complete_ && !request_.resume) {
      throw Error::output(fmt::format("{}: complete already", request_.output.string()))
          .hint("--resume accepts it; a shard replaces no result, so remove it first");
    }
    if (!complete_) {
      refuse_unrecorded();
      look_for_shards();
    }
    if (!complete_ && request_.shard) look_for_own_shard();
  }
  if (!complete_) open_journal(planned);
}

ConversionOutput::~ConversionOutput() {
  if (journal_ && !finished_any_ && earlier_.files.empty()) journal_->remove();
}

void ConversionOutput::look_for_manifests(const std::vector<Manifest>& planned) {
  size_t found = 0;
  for (const fs::path& blob : all_blobs(request_.output)) {
    std::error_code ignored;
    if (!fs::exists(blob / kManifestName, ignored)) continue;
    if (!is_result_of(blob, blob_, planned)) {
      throw Error::output(
          fmt::format("{}: holds a complete result of another conversion", blob.string()))
          .hint(request_.shard
                    ? "choose another directory; a shard replaces no result, so remove it first"
                    : "choose another directory; --force replaces it");
    }
    ++found;
  }
  complete_ = found == planned.size();
  if (!complete_) return;
  directory_.keep();
  if (!request_.shard) remove_records();
}

// A run that was killed after its last manifest leaves its journal, and perhaps temporaries.
void ConversionOutput::remove_records() const {
  for (const fs::path& file : directory_.files()) {
    if (is_journal_or_temporary(file)) remove_file(request_.output / file);
  }
}

// Other than --force, --resume and --shard replace nothing but what an unfinished conversion left.
// Without its records each file has to show by itself that it is a piece of one.
void ConversionOutput::refuse_unrecorded() const {
  const auto whole = [&](const fs::path& file) { return request_.output / file; };
  // Listed again, as another shard may have begun, or have come to its end, meanwhile.
  for (int look = 0; look < 2; ++look) {
    if (std::ranges::any_of(directory_.files(), is_record, whole)) return;
  }
  const std::vector<fs::path> files = directory_.files();
  const auto foreign = std::ranges::find_if_not(files, is_piece_of_blob, whole);
  if (foreign == files.end()) return;
  throw Error::output(fmt::format("{}: holds {}, but no record of an unfinished conversion",
                                  request_.output.string(), foreign->string()))
      .hint(request_.shard ? "choose an empty directory" : "--force replaces an earlier result");
}

void ConversionOutput::look_for_shards() {
  for (const fs::path& path : find_shard_manifests(blob_)) {
    if (!request_.shard) {
      throw Error::output(fmt::format("{}: holds shards of a conversion", blob_.string()))
          .hint("finalize puts them together; --force replaces them");
    }
    const ShardManifest other = read_shard_manifest(path);
    if (other.plan != plan_ || other.shard.count != request_.shard->count) {
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

void ConversionOutput::look_for_own_shard() {
  const fs::path path = blob_ / shard_manifest_name(*request_.shard);
  std::error_code ignored;
  if (request_.force || !fs::exists(path, ignored)) return;
  if (request_.resume) {
    complete_ = true;
  } else {
    throw Error::output(fmt::format("{}: this shard is complete already", path.string()))
        .hint("--resume accepts it, --force writes it again");
  }
}

void ConversionOutput::open_journal(const std::vector<Manifest>& planned) {
  const fs::path path = blob_ / journal_name(request_.shard);
  // A resumed run must read what the earlier one read.
  const std::string identity = checksum_of(plan_ + source_.stamp);
  JournalContent found = read_journal(path);
  const bool same = request_.resume && found.plan == identity;
  if (!same && request_.resume && !request_.shard) directory_.clear();
  make_directories(blob_);
  journal_ = std::make_unique<Journal>(path);
  if (request_.shard && !request_.resume && !request_.force && !found.files.empty()) {
    throw Error::output(
        fmt::format("{}: an earlier run of this shard did not finish", path.string()))
        .hint("--resume goes on, --force starts again");
  }
  if (same) {
    journal_->resume(found);
    earlier_ = std::move(found);
  } else {
    std::vector<std::string> names;
    for (const ManifestFile& file : planned.front().rest) names.push_back(file.name);
    try {
      journal_->begin(identity, names);
    } catch (const Error&) {
      journal_->remove();  // it says nothing, and OUT may be as empty as before
      throw;
    }
    // Not before: without either nobody knows whose the files are.
    if (request_.shard) remove_file(blob_ / shard_manifest_name(*request_.shard));
  }
  remove_leftovers(planned);
}

// What dead runs left: temporaries. Layers that no manifest would name are not theirs.
void ConversionOutput::remove_leftovers(const std::vector<Manifest>& planned) const {
  if (request_.shard) return;  // other shards' may be alive
  std::set<std::string> wanted;
  for (const Manifest& manifest : planned) {
    for (const ManifestLayer& layer : manifest.layers) {
      wanted.insert(name_in_blob(manifest.rank, layer.file));
    }
  }
  for (const fs::path& file : directory_.files()) {
    const std::string name = file.filename().string();
    const std::string in_blob = (request_.output / file).lexically_relative(blob_).string();
    if (name.starts_with("layer-") && !wanted.contains(in_blob)) {
      throw Error::output(fmt::format("{}: holds {}, which this conversion does not write",
                                      request_.output.string(), file.string()))
          .hint("--force replaces an earlier result");
    }
    if (is_temporary(name)) remove_file(request_.output / file);
  }
}

std::optional<FinishedFile> ConversionOutput::kept(const std::string& name) const {
  const auto found = earlier_.files.find(name);
  if (found == earlier_.files.end()) return std::nullopt;
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

void ConversionOutput::finished(const FinishedFile& file,
                                const std::vector<std::string>& warnings) {
  finished_any_ = true;
  journal_->add(file, warnings);
}

std::vector<std::string> ConversionOutput::commit(std::vector<Manifest> manifests,
                                                  const std::vector<std::string>& warnings) {
  std::set<std::string> all = journal_->warnings();
  all.insert(warnings.begin(), warnings.end());
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
  finished_any_ = true;
  journal_->remove();
  directory_.keep();
  return {all.begin(), all.end()};
}

}  // namespace mxfp4
