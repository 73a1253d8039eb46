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
#include "formats/os/atomic_file.hpp"
#include "formats/os/file_identity.hpp"
#include "formats/output/foreign.hpp"
#include "formats/remote/files_at.hpp"
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
    const bool inside =
        is_address(out) ? input.string().starts_with(out.string() + "/") : lies_in(input, out);
    if (!inside) continue;
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
  if (is_address(sibling_.out())) far_.emplace(sibling_.out().string());
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
  if (!locked && !far_) look();  // another run may have ended meanwhile
  if (!complete_) begin();
}

ConversionOutput::~ConversionOutput() {
  if (!journal_ || !begun_.empty() || !made_.empty()) return;
  try {
    journal_->remove();
    if (far_ && seen_.there == There::kNothing) far_->remove_journal();
  } catch (const Error&) {
    // What made the run fail is what the user has to know.
  }
}

fs::path ConversionOutput::begun_home() const {
  return far_ ? sibling_.out() : sibling_of(sibling_.out()) / kResultFolder;
}

fs::path ConversionOutput::in_home(const std::string& name) const {
  return (blob_place("", request_.include_rest) / name).lexically_normal();
}

Directory ConversionOutput::blob() const {
  return home().folder(blob_place(".", request_.include_rest));
}

// Whether a finished file still is as it was recorded; without `all_bytes` by its size, header and
// seek table.
bool ConversionOutput::is_whole(const FinishedFile& file, const fs::path& home, bool all_bytes,
                                std::vector<std::string>& damages) const {
  const fs::path path = home / in_home(file.name);
  const size_t before = damages.size();
  gather(damages, [&] {
    if (!exists_at(path)) throw Error::input("missing").in_file(path.string());
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
    if (!far_) refuse_foreign(sibling_.out());
  }
  resumed_ = answer.does == Does::kContinue && seen_.journal.bytes > 0;
  if (resumed_) begun_ = seen_.journal.files;
  if (into_ == Sibling::Into::kRanks) take_over();
  if (answer.does != Does::kContinue) return;
  const bool is_result = seen_.there == There::kResult && damages_.empty();
  complete_ = is_result || (request_.shard && seen_.journal.ready && all_begun_are_whole());
  if (is_result && far_ && seen_.over && !request_.look_only) far_->remove_journal();
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
  const auto look_at = [&](const FinishedFile& file, std::vector<std::string>& damages) {
    (is_whole(file, sibling_.out(), request_.check, damages) ? whole_ : lost_)[file.name] = file;
  };
  for (const Manifest& manifest : seen_.ranks) {
    for (const FinishedFile& file : files_of(manifest)) look_at(file, damages_);
    const fs::path index = in_home(name_in_blob(manifest.rank, std::string(kIndexName)));
    for (std::string& damage : check_index(sibling_.out() / index.parent_path(), manifest))
      damages_.push_back(std::move(damage));
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
    return is_whole(entry.second, begun_home(), request_.check, unsaid);
  });
}

void ConversionOutput::begin() {
  if (seen_.others && into_ == Sibling::Into::kRanks) {
    throw refusal(answer_to(There::kUnfinishedOther, Asked::kPlain), seen_.named);
  }
  if (far_ || (!request_.shard && !resumed_)) {
    sibling_.clear(!far_ && seen_.over);
    sibling_.make();
  }
  if (far_ && resumed_) {
    write_atomically(sibling_.place(), journal_name({}),
                     text_at(sibling_.out() / kFarJournal, INT64_MAX));
  }
  sibling_.require_exchange();
  journal_ = std::make_unique<Journal>(sibling_.place(), journal_name(request_.shard));
  if (resumed_) {
    journal_->resume(seen_.journal);
    if (!far_) sibling_.keep();
  } else {
    journal_->begin({wanted_.plan, wanted_.planned, wanted_.source, request_.shard});
  }
  if (!far_) return;
  far_->record(sibling_.place().path() / journal_name({}));
  const bool nothing = seen_.there == There::kNothing || into_ == Sibling::Into::kRanks;
  if (!nothing && begun_.empty()) far_->clear();
}

bool ConversionOutput::keep(const std::string& name) {
  std::vector<std::string> unsaid;
  const auto whole = whole_.find(name);
  const auto begun = begun_.find(name);
  if (whole != whole_.end()) {
    made_.insert(*whole);
  } else if (begun != begun_.end() &&
             is_whole(begun->second, begun_home(), !far_ || request_.check, unsaid)) {
    made_.insert(*begun);
  } else {
    return false;
  }
  return true;
}

bool ConversionOutput::keep_layer(const std::string& name, Manifest rank, ManifestLayer layer,
                                  int threads) {
  if (whole_.contains(name) || far_) return keep(name);  // far, only --check reads it again
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
    const fs::path home = (begun_home() / in_home(name)).parent_path();
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
    throw Error::usage(
        fmt::format("{}: its bytes differ from those in the manifest: the input has changed since",
                    (sibling_.out() / in_home(file.name)).string()))
        .hint(seen_.other_ranks.empty() ? "--force converts everything again"
                                        : "choose another directory");
  }
  finish_sending();
  journal_->add(file, warnings);
  made_[file.name] = file;
  sending_ = in_home(file.name);
  if (!far_) sibling_.keep();
}

void ConversionOutput::named() {
  if (far_) far_->send(sending_.string(), home().path() / sending_);
}

// The journal is put when all files are there that it names.
void ConversionOutput::finish_sending() {
  if (!far_ || sending_.empty()) return;
  far_->finish();
  home().folder(sending_.parent_path()).remove(sending_.filename().string());
  far_->record(sibling_.place().path() / journal_name({}));
  sending_.clear();
}

std::vector<std::string> ConversionOutput::commit(const std::vector<std::string>& warnings) {
  finish_sending();
  std::set<std::string> all = journal_->warnings();
  all.insert(warnings.begin(), warnings.end());
  all.insert(warnings_.begin(), warnings_.end());
  std::vector<std::string> said(all.begin(), all.end());
  if (!far_) sibling_.keep();
  if (request_.shard) {
    journal_->ready();
    journal_.reset();
    return said;
  }
  std::vector<Manifest> manifests = filled(wanted_.planned, made_);
  for (Manifest& manifest : manifests) {
    manifest.warnings.insert(manifest.warnings.end(), all.begin(), all.end());
  }
  if (!far_) write_manifests(blob(), manifests);
  journal_->ready();
  if (far_) {
    far_->record(sibling_.place().path() / journal_name({}));
    far_->complete(in_home("."), manifests, into_ == Sibling::Into::kRanks);
    return said;
  }
  journal_.reset();
  if (into_ == Sibling::Into::kOther) refuse_foreign(sibling_.out());  // of meanwhile
  if (std::string left = sibling_.publish(into_); !left.empty()) said.push_back(std::move(left));
  return said;
}

}  // namespace mxfp4
