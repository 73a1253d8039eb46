// Where a conversion writes, and what of it an earlier run has done already: force, resume and
// shards are decided here. Layout of OUT: man/mxfp4-repack-container.5.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/blob/journal.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/blob/shard_manifest.hpp"
#include "formats/conversion/output_directory.hpp"
#include "formats/source/source.hpp"
#include "lib/plan/shard.hpp"

namespace mxfp4 {

// The caller's wishes for OUT.
struct OutputRequest {
  std::filesystem::path output;  // OUT
  std::filesystem::path input;   // what is converted
  bool include_rest = false;     // OUT is a model directory, the blob a folder in it
  bool resume = false;
  bool force = false;
  bool check = false;      // resume reads every byte of a complete result
  bool look_only = false;  // the same answers and errors, and nothing is written
  std::optional<Shard> shard;
  std::map<std::string, std::string> flags;  // that decide what is made: name, value
  std::function<void()> between;             // called every few MB that are read; may throw to stop
};

class ConversionOutput {
 public:
  // `planned` is what the manifests will say, data aside (planned_manifests). Without resume and
  // shard OUT has to be empty; force builds beside what this program wrote there, which stays until
  // commit(). With resume:
  //   a complete result of this plan      complete() is true, nothing is to be done; what of it is
  //                                       missing or damaged is made again, and is in damages()
  //   an unfinished run of this plan on an unchanged source: its whole files are kept; also one
  //                                       that replaces another result
  //   another plan, or a changed source   Error::usage naming the flags that differ
  //   anything else                       Error::output
  // A shard joins the others' files in OUT; its own are treated as above, and force replaces no
  // others.
  ConversionOutput(OutputRequest request, const std::vector<Manifest>& planned,
                   const Source& source);
  ConversionOutput(const ConversionOutput&) = delete;
  ConversionOutput& operator=(const ConversionOutput&) = delete;
  // Without commit() and without any finished file nothing stays behind.
  ~ConversionOutput();

  [[nodiscard]] bool complete() const { return complete_; }
  // What an earlier run left beside a complete result and cannot be removed, as a line; empty: nothing.
  [[nodiscard]] const std::string& leftover() const { return leftover_; }
  // "<file>: <what>", of a complete result's files that are made again.
  [[nodiscard]] const std::vector<std::string>& damages() const { return damages_; }
  // Directory where the blob is written: OUT, a folder in it, or the same in what will replace it.
  [[nodiscard]] const std::filesystem::path& blob() const { return blob_; }
  void reserve(int64_t bytes) const { directory_.reserve(bytes); }
  // The free bytes of the file system, and a text that tells what OUT holds.
  [[nodiscard]] std::optional<int64_t> free_bytes() const { return directory_.free_bytes(); }
  [[nodiscard]] std::string holds() const;
  // Whether an earlier run recorded the file as finished; it was not read again.
  [[nodiscard]] bool recorded(const std::string& name) const {
    return earlier_.files.contains(name);
  }
  // The file that an earlier run finished under this name, if it was read again and found whole.
  [[nodiscard]] std::optional<FinishedFile> kept(const std::string& name) const;
  // A file is complete and about to get its name; `warnings` are all that data gave rise to so far.
  void finished(const FinishedFile& file, const std::vector<std::string>& warnings);
  // Writes manifests, or the shard's, and puts the result in its place; from then on it is
  // complete. Returns the warnings of all runs.
  std::vector<std::string> commit(std::vector<Manifest> manifests,
                                  const std::vector<std::string>& warnings);

 private:
  void look_for_manifests(const std::vector<Manifest>& planned);
  void look_at_result(const std::vector<Manifest>& found, const std::vector<Manifest>& planned);
  void look_for_replacement();
  void remove_records();
  void refuse_unrecorded() const;
  void refuse_other(const JournalContent& found) const;
  void look_for_shards();
  void look_for_own_shard();
  void open_journal(const std::vector<Manifest>& planned);
  void remove_leftovers(const std::vector<Manifest>& planned) const;
  [[nodiscard]] std::filesystem::path blob_in(const std::filesystem::path& home) const;

  OutputRequest request_;
  OutputDirectory directory_;
  std::filesystem::path blob_;
  std::string plan_;  // identity
  SourceSeen source_;
  std::vector<int64_t> layers_;  // numbers
  JournalContent earlier_;
  std::vector<std::string> damages_;
  std::string leftover_;
  bool looked_at_ = false;  // what earlier_ names was found whole
  std::unique_ptr<Journal> journal_;
  bool finished_any_ = false;
  bool complete_ = false;
};

}  // namespace mxfp4
