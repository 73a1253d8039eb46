#include "formats/output/conversion_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "formats/blob/blob_check.hpp"
#include "formats/blob/blob_files.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/blob/blob_writer.hpp"
#include "formats/blob/gather.hpp"
#include "formats/blob/planned.hpp"
#include "formats/blob/rest_check.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/os/file_identity.hpp"
#include "formats/output/foreign.hpp"
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

// Describes the source, and the files beside it that are copied, by sizes, times and inodes. All
// but the sizes differ between machines, so manifests do not have them.
SourceSeen look_at(const OutputRequest& request, const Source& source) {
  SourceSeen seen;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> seen.machine;
  std::error_code error;
  // An address is the same from every directory.
  const fs::path place =
      source.is_far() ? request.input : fs::weakly_canonical(request.input, error);
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

void refuse_inputs_in(const fs::path& out, const std::vector<fs::path>& inputs) {
  for (const fs::path& input : inputs) {
    if (!lies_in(input, out)) continue;
    throw Error::output(fmt::format("holds the input {}", input.string()))
        .in_file(out.string())
        .hint("choose another directory");
  }
}

}  // namespace

ConversionOutput::ConversionOutput(OutputRequest request, const std::vector<Manifest>& planned,
                                   const Source& source)
    : request_(std::move(request)),
      sibling_(request_.output, request_.shard.has_value()),
      wanted_{.planned = planned,
              .include_rest = request_.include_rest,
              .shard = request_.shard,
              .plan = plan_identity(planned),
              .source = look_at(request_, source)} {
  const bool locked = sibling_.there();
  try {
    look();
  } catch (const Error&) {
    if (!locked) sibling_.lock_if_there();  // what it saw may be another run's that has begun since
    throw;
  }
  if (complete_) return;
  if (request_.look_only) {
    sibling_.require_writable();
    return;
  }
  sibling_.make();
  if (!locked) look();  // another run may have ended meanwhile
  if (!complete_) begin();
}

ConversionOutput::~ConversionOutput() {
  if (!journal_ || !begun_.empty() || !made_.empty()) return;
  try {
    journal_->remove();
  } catch (const Error&) {
    // What made the run fail is what the user has to know.
  }
}

fs::path ConversionOutput::begun_blob() const {
  return blob_place(sibling_of(sibling_.out()) / kResultFolder, request_.include_rest);
}

Directory ConversionOutput::blob() const {
  return home().folder(blob_place(".", request_.include_rest));
}

// Whether a finished file still is as it was recorded; without `all_bytes` by its size, header and
// seek table.
bool ConversionOutput::is_whole(const FinishedFile& file, const fs::path& blob, bool all_bytes,
                                std::vector<std::string>& damages) const {
  const fs::path path = (blob / file.name).lexically_normal();
  const size_t before = damages.size();
  gather(damages, [&] {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) throw Error::input("missing").in_file(path.string());
    require_bytes(path, file.size, all_bytes ? &file.xxh3_128 : nullptr, ReadFrom::kCache,
                  request_.between);
    if (!file.tensors.empty()) (void)LayerReader(path);
  });
  return damages.size() == before;
}

// Asks the table, and finds what is whole.
void ConversionOutput::look() {
  seen_ = observe(sibling_, wanted_);
  whole_ = lost_ = begun_ = {};
  damages_.clear();
  const Asked asked = asked_of(request_);
  const Answer& answer = answer_to(seen_.there, asked);
  if (answer.does == Does::kRefuse) {
    if (!seen_.cause || asked == Asked::kPlain) throw refusal(answer, seen_.named);
    if (seen_.cause->hint_text() == kNewerProgram) throw Error(*seen_.cause);
    throw seen_.cause->hint(std::string(answer.hint));
  }
  const bool again = answer.does == Does::kReplace;
  if (!seen_.occupied) {
    into_ = Sibling::Into::kFree;
  } else if (!again && seen_.in_out != There::kOtherResult) {
    into_ = Sibling::Into::kRanks;
  } else {
    into_ = Sibling::Into::kOther;
    if (!seen_.lost_rank.empty()) {
      throw refusal(kKeepsRank, {request_.output.string(), {}, seen_.lost_rank});
    }
    if (seen_.cause) throw seen_.cause->hint("choose another directory, or remove this one");
    refuse_inputs_in(sibling_.out(), request_.inputs);
    refuse_foreign(sibling_.out());
  }
  resumed_ = answer.does == Does::kContinue && seen_.journal.bytes > 0;
  if (resumed_) begun_ = seen_.journal.files;
  if (into_ == Sibling::Into::kRanks) take_over();
  if (answer.does != Does::kContinue) return;
  const bool is_result = seen_.there == There::kResult && damages_.empty();
  complete_ = is_result || (request_.shard && seen_.journal.ready && all_begun_are_whole());
  if (!is_result || !sibling_.there() || request_.shard || request_.look_only) return;
  try {
    if (!seen_.others) sibling_.remove(/*replaced=*/true);
  } catch (const Error& error) {
    leftover_ = fmt::format("{}; the result is complete without it", error.what());
  }
}

// Of the complete ranks in OUT, whole files are kept; others are made again, and so is an index.
// The model directory's files belong to all ranks, also to those that this run does not make.
void ConversionOutput::take_over() {
  const fs::path blob = blob_place(sibling_.out(), request_.include_rest);
  const auto look_at = [&](const FinishedFile& file, std::vector<std::string>& damages) {
    (is_whole(file, blob, request_.check, damages) ? whole_ : lost_)[file.name] = file;
  };
  for (const Manifest& manifest : seen_.ranks) {
    for (const FinishedFile& file : files_of(manifest)) look_at(file, damages_);
    const fs::path home = (blob / rank_directory(manifest.rank)).lexically_normal();
    for (std::string& damage : check_index(home, manifest)) damages_.push_back(std::move(damage));
    const std::vector<std::string>& planned = wanted_.planned.front().warnings;
    for (const std::string& warning : manifest.warnings) {
      if (std::ranges::find(planned, warning) == planned.end()) warnings_.insert(warning);
    }
  }
  std::vector<std::string> unsaid;
  if (!seen_.ranks.empty()) {
    for (const FinishedFile& file : rest_of(seen_.ranks.front())) look_at(file, damages_);
  } else if (!seen_.other_ranks.empty()) {
    for (const FinishedFile& file : rest_of(seen_.other_ranks.front())) look_at(file, unsaid);
  }
}

bool ConversionOutput::all_begun_are_whole() const {
  std::vector<std::string> unsaid;
  return std::ranges::all_of(begun_, [&](const auto& entry) {
    return is_whole(entry.second, begun_blob(), request_.check, unsaid);
  });
}

void ConversionOutput::begin() {
  if (seen_.others && into_ == Sibling::Into::kRanks) {
    throw refusal(answer_to(There::kUnfinishedOther, Asked::kPlain), seen_.named);
  }
  if (!request_.shard && !resumed_) {
    sibling_.clear(seen_.over);
    sibling_.make();
  }
  sibling_.require_exchange();
  journal_ = std::make_unique<Journal>(sibling_.place(), journal_name(request_.shard));
  if (resumed_) {
    journal_->resume(seen_.journal);
    sibling_.keep();
  } else {
    journal_->begin({wanted_.plan, wanted_.planned, wanted_.source, request_.shard});
  }
}

bool ConversionOutput::keep(const std::string& name) {
  std::vector<std::string> unsaid;
  const auto whole = whole_.find(name);
  const auto begun = begun_.find(name);
  if (whole != whole_.end()) {
    made_.insert(*whole);
  } else if (begun != begun_.end() && is_whole(begun->second, begun_blob(), true, unsaid)) {
    made_.insert(*begun);
  } else {
    return false;
  }
  return true;
}

bool ConversionOutput::keep_layer(const std::string& name, Manifest rank, ManifestLayer layer,
                                  int threads) {
  if (whole_.contains(name)) return keep(name);
  const auto begun = begun_.find(name);
  if (begun == begun_.end()) return false;
  const FinishedFile& record = begun->second;
  if (record.tensors.size() != layer.tensors.size()) return false;
  layer.size = record.size;
  layer.xxh3_128 = record.xxh3_128;
  for (size_t i = 0; i < layer.tensors.size(); ++i) layer.tensors[i].xxh3_128 = record.tensors[i];
  rank.layers = {std::move(layer)};
  const auto between = [&](int64_t /*bytes*/) {
    if (request_.between) request_.between();
  };
  try {
    const fs::path home = (begun_blob() / name).parent_path();
    if (!check_layer_files(home, rank, threads, between).empty()) return false;
  } catch (const Error&) {
    return false;  // not readable
  }
  made_[name] = record;
  return true;
}

void ConversionOutput::finished(const FinishedFile& file,
                                const std::vector<std::string>& warnings) {
  const auto lost = lost_.find(file.name);
  if (lost != lost_.end() && lost->second.xxh3_128 != file.xxh3_128) {
    const fs::path blob = blob_place(sibling_.out(), request_.include_rest);
    throw Error::usage(
        fmt::format("{}: its bytes differ from those in the manifest: the input has changed since",
                    (blob / file.name).lexically_normal().string()))
        .hint(seen_.other_ranks.empty() ? "--force converts everything again"
                                        : "choose another directory");
  }
  journal_->add(file, warnings);
  made_[file.name] = file;
  sibling_.keep();
}

std::vector<std::string> ConversionOutput::commit(const std::vector<std::string>& warnings) {
  std::set<std::string> all = journal_->warnings();
  all.insert(warnings.begin(), warnings.end());
  all.insert(warnings_.begin(), warnings_.end());
  std::vector<std::string> said(all.begin(), all.end());
  sibling_.keep();
  if (request_.shard) {
    journal_->ready();
    journal_.reset();
    return said;
  }
  std::vector<Manifest> manifests = filled(wanted_.planned, made_);
  for (Manifest& manifest : manifests) {
    manifest.warnings.insert(manifest.warnings.end(), all.begin(), all.end());
  }
  write_manifests(blob(), manifests);
  journal_->ready();
  journal_.reset();
  if (into_ == Sibling::Into::kOther) refuse_foreign(sibling_.out());  // of meanwhile
  if (std::string left = sibling_.publish(into_); !left.empty()) said.push_back(std::move(left));
  return said;
}

}  // namespace mxfp4
