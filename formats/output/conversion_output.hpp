// Decides where a conversion writes, and what an earlier run has done of it already: what --force,
// --resume and --shard mean. The files of OUT: man/mxfp4-repack-container.5.
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
#include "formats/output/other_conversions.hpp"
#include "formats/output/output_directory.hpp"
#include "formats/source/source.hpp"
#include "lib/plan/shard.hpp"

namespace mxfp4 {

// What the caller asks of OUT.
struct OutputRequest {
  std::filesystem::path output;                     // OUT
  std::filesystem::path input;                      // what is converted
  std::vector<std::filesystem::path> side_files{};  // of the input, copied as they are
  bool include_rest = false;  // OUT is a model directory, the blob a folder in it
  bool resume = false;
  bool force = false;
  bool check = false;      // resume reads every byte of a complete result
  bool look_only = false;  // gives the same answers and errors, but writes nothing
  std::optional<Shard> shard;
  std::map<std::string, std::string> flags;  // that decide what is made: name, value
  std::function<void()> between;             // called every few MB that are read; may throw to stop
};

class ConversionOutput {
 public:
  // `planned`: the manifests that will be written, without what depends on the data
  // (planned_manifests). Without resume and shard, OUT has to be empty; force builds a new result
  // beside the one that this program wrote there, which stays until commit(). With resume, OUT may
  // hold one of these:
  // - A complete result of this plan: complete() is true, and there is nothing to do. If files of it
  //   are missing or damaged, damages() lists them, and they are made again.
  // - An unfinished run of this plan, whose source is unchanged: its complete files are kept. The run
  //   may be one that replaces another result.
  // - Another plan's run, or one on a source that changed: Error::usage, which names the flags that
  //   differ.
  // - Anything else: Error::output.
  // A shard writes beside the files of others in OUT. Its own files are treated as above; force
  // replaces only them.
  ConversionOutput(OutputRequest request, const std::vector<Manifest>& planned,
                   const Source& source);
  ConversionOutput(const ConversionOutput&) = delete;
  ConversionOutput& operator=(const ConversionOutput&) = delete;
  // Without commit() and any finished file, leaves nothing behind.
  ~ConversionOutput();

  [[nodiscard]] bool complete() const { return complete_; }
  // Says which file of an earlier run, beside a complete result, cannot be removed; empty if none.
  [[nodiscard]] const std::string& leftover() const { return leftover_; }
  // "<file>: <what>", for each file of a complete result that is made again.
  [[nodiscard]] const std::vector<std::string>& damages() const { return damages_; }
  // The directory where the blob is written: OUT, a folder in it, or the same in the directory that
  // will replace OUT.
  [[nodiscard]] const std::filesystem::path& blob() const { return blob_; }
  void reserve(int64_t bytes) const { directory_.reserve(bytes); }
  // The free bytes of the file system, and a text that says what OUT holds.
  [[nodiscard]] std::optional<int64_t> free_bytes() const { return directory_.free_bytes(); }
  [[nodiscard]] std::string holds() const;
  // Whether an earlier run finished the file, by its record alone: the file may have changed since.
  [[nodiscard]] bool recorded(const std::string& name) const {
    return earlier_.files.contains(name);
  }
  // The file that an earlier run finished under this name, if it is still whole: by its checksum,
  // or as the constructor found it.
  [[nodiscard]] std::optional<FinishedFile> kept(const std::string& name) const;
  // Call it when a file is complete, before it gets its name. `warnings`: all about data so far.
  // Throws Error::usage for a file of a complete result that is made again, if its bytes are not
  // those in the manifest: the files that are kept come from another input.
  void finished(const FinishedFile& file, const std::vector<std::string>& warnings);
  // Writes the manifests, or the shard's manifest, and puts the result in its place, which
  // completes it. Returns the warnings of all runs.
  std::vector<std::string> commit(std::vector<Manifest> manifests,
                                  const std::vector<std::string>& warnings);

 private:
  void look_for_manifests(const std::vector<Manifest>& planned);
  void look_at_result(const std::vector<Manifest>& found, const std::vector<Manifest>& planned);
  void look_for_replacement();
  void remove_records();
  void look_for_own_shard();
  void open_journal(const std::vector<Manifest>& planned);
  void remove_leftovers() const;
  [[nodiscard]] OtherConversions others() const;
  [[nodiscard]] std::filesystem::path blob_in(const std::filesystem::path& home) const;

  OutputRequest request_;
  OutputDirectory directory_;
  std::filesystem::path blob_;
  std::string plan_;  // identity
  SourceSeen source_;
  std::vector<int64_t> layers_;  // numbers
  JournalContent earlier_;
  std::vector<std::string> damages_;
  std::map<std::string, FinishedFile> lost_;  // files in damages_, as the manifests have them
  std::string leftover_;
  bool looked_at_ = false;  // the files in earlier_ were compared with manifests, and are whole
  std::unique_ptr<Journal> journal_;
  bool finished_any_ = false;
  bool complete_ = false;
};

}  // namespace mxfp4
