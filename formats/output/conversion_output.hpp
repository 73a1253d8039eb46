// Carries out what states.hpp's table answers to a conversion: begins, goes on, takes over,
// replaces. The files of OUT: man/mxfp4-repack-container.5.
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
#include "formats/checksum/read_back.hpp"
#include "formats/os/file.hpp"
#include "formats/output/observe.hpp"
#include "formats/output/output_directory.hpp"
#include "formats/source/source.hpp"
#include "lib/plan/shard.hpp"

namespace mxfp4 {

// What the caller asks of OUT.
struct OutputRequest {
  std::filesystem::path output;                 // OUT
  std::filesystem::path input;                  // what is converted
  std::vector<std::filesystem::path> inputs{};  // that must not lie in OUT
  std::vector<FileStatus> side_files{};         // of the input, copied as they are
  bool include_rest = false;                    // OUT is a model directory, the blob a folder in it
  bool resume = false;
  bool force = false;
  bool check = false;                  // resume reads every byte of a complete result
  ReadBack read_back = ReadBack::kNo;  // of manifests
  bool look_only = false;              // gives the same answers and errors, but writes nothing
  std::optional<Shard> shard;
  std::map<std::string, std::string> flags;  // that decide what is made: name, value
  std::function<void()> between;             // called every few MB that are read; may throw to stop
};

class ConversionOutput {
 public:
  // `planned`: the manifests that will be written, without what depends on the data
  // (planned_manifests). Locks OUT, looks at it, and throws what the table of states.hpp refuses:
  // Error::output, Error::usage for other flags, Error::input for a damaged manifest.
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
  // The directory where files are written: OUT, or the one that will replace OUT.
  [[nodiscard]] const Directory& home() const { return directory_.home(); }
  // Where the blob is written: home(), or a folder in it. Made if it is missing.
  [[nodiscard]] Directory blob() const;
  void reserve(int64_t bytes) const {
    directory_.reserve(bytes, ", or fewer layers at a time: --shard I/N");
  }
  // The free bytes of the file system, and a text that says what OUT held at first.
  [[nodiscard]] std::optional<int64_t> free_bytes() const { return directory_.free_bytes(); }
  [[nodiscard]] const std::string& holds() const { return seen_.holds; }
  // Whether an earlier run recorded the file as finished. The file itself may have changed since.
  [[nodiscard]] bool recorded(const std::string& name) const {
    return earlier_.files.contains(name);
  }
  // The file that an earlier run finished under this name, if it is still whole: by its checksum,
  // or as the constructor found it.
  [[nodiscard]] std::optional<FinishedFile> kept(const std::string& name) const;
  // The same of a layer file: `layer` is its entry in the manifest `rank`, without checksums. Every
  // tensor is compared with its own record.
  [[nodiscard]] std::optional<FinishedFile> kept_layer(const std::string& name, Manifest rank,
                                                       ManifestLayer layer, int threads) const;
  // Call it when a file is complete, before it gets its name. `warnings`: all about data so far.
  // Throws Error::usage for a file of a complete result that is made again, if its bytes are not
  // those in the manifest: the files that are kept come from another input.
  void finished(const FinishedFile& file, const std::vector<std::string>& warnings);
  // Writes the manifests, or the shard's manifest, and puts the result in its place, which
  // completes it. Returns the warnings of all runs.
  std::vector<std::string> commit(std::vector<Manifest> manifests,
                                  const std::vector<std::string>& warnings);

 private:
  [[nodiscard]] std::filesystem::path blob_path() const;
  void carry_out(Does does);
  void accept(const std::vector<Manifest>& manifests);
  void add_warnings(const Manifest& manifest);
  void take_over_ranks();
  void remove_leftovers();
  void open_journal();

  OutputRequest request_;
  OutputDirectory directory_;
  Wanted wanted_;
  Seen seen_;
  JournalContent earlier_;
  std::vector<std::string> damages_;
  std::map<std::string, FinishedFile> lost_;  // files that are made again, as manifests have them
  std::string leftover_;
  bool looked_at_ = false;  // the files in earlier_ were compared with manifests, and are whole
  bool resumed_ = false;    // goes on with the journal that was there
  std::unique_ptr<Journal> journal_;
  bool finished_any_ = false;
  bool complete_ = false;
};

}  // namespace mxfp4
