// Carries out what states.hpp's table answers to a conversion: begins, goes on, takes over,
// replaces. The files of OUT: man/mxfp4-repack-container.5.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "formats/blob/journal.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/os/file.hpp"
#include "formats/output/far_output.hpp"
#include "formats/output/observe.hpp"
#include "formats/output/sibling.hpp"
#include "formats/source/source.hpp"
#include "lib/plan/shard.hpp"

namespace mxfp4 {

// What the caller asks of OUT.
struct OutputRequest {
  std::filesystem::path output;                 // OUT; or "s3://BUCKET/PREFIX"
  std::filesystem::path input;                  // what is converted
  std::vector<std::filesystem::path> inputs{};  // its files, which must not lie in OUT
  std::vector<FileStatus> side_files{};         // of the input, copied as they are
  bool include_rest = false;                    // OUT is a model directory, the blob a folder in it
  bool resume = false;
  bool force = false;
  bool check = false;      // resume reads every byte of a complete result
  bool look_only = false;  // gives the same answers and errors, but writes nothing
  std::optional<Shard> shard;
  std::function<void()> between;  // called every few MB that are read; may throw to stop
};

class ConversionOutput {
 public:
  // `planned`: the manifests that will be written, without what depends on the data
  // (planned_manifests). Looks at OUT, locks its sibling, and throws what the table of states.hpp
  // refuses: Error::output, Error::usage for other flags, Error::input for a damaged manifest.
  ConversionOutput(OutputRequest request, const std::vector<Manifest>& planned,
                   const Source& source);
  ConversionOutput(const ConversionOutput&) = delete;
  ConversionOutput& operator=(const ConversionOutput&) = delete;
  // Without commit() and any finished file, leaves nothing behind.
  ~ConversionOutput();

  [[nodiscard]] bool complete() const { return complete_; }
  // Says what of an earlier run, beside a complete result, cannot be removed; empty if nothing.
  [[nodiscard]] const std::string& leftover() const { return leftover_; }
  // "<file>: <what>", for each file of a complete result that is made again.
  [[nodiscard]] const std::vector<std::string>& damages() const { return damages_; }
  // The directory where files are written, which will be OUT.
  [[nodiscard]] const Directory& home() const { return sibling_.result(); }
  // Where the blob is written: home(), or a folder in it. Made if it is missing.
  [[nodiscard]] Directory blob() const;
  void reserve(int64_t bytes) const { sibling_.reserve(bytes); }
  [[nodiscard]] bool is_far() const { return far_.has_value(); }
  // The free bytes of the file system, and a text that says what OUT held at first.
  [[nodiscard]] std::optional<int64_t> free_bytes() const { return sibling_.free_bytes(); }
  [[nodiscard]] const std::string& holds() const { return seen_.holds; }
  // Whether an earlier run recorded the file as finished. The file itself may have changed since.
  [[nodiscard]] bool recorded(const std::string& name) const {
    return whole_.contains(name) || begun_.contains(name);
  }
  // Takes over the file that an earlier run finished under this name, if it is still whole.
  [[nodiscard]] bool keep(const std::string& name);
  // The same of a layer file: `layer` is its entry in the manifest `rank`, without checksums. Every
  // tensor is compared with its own record.
  [[nodiscard]] bool keep_layer(const std::string& name, Manifest rank, ManifestLayer layer,
                                int threads);
  // Call it when a file is complete, before it gets its name. `warnings`: all about data so far.
  // Throws Error::usage for a file of a result that is made again, if its bytes are not those in
  // the manifest: the files that are kept come from another input.
  void finished(const FinishedFile& file, const std::vector<std::string>& warnings);
  // Call it when that file has its name: object storage is sent it now.
  void named();
  // Completes OUT, or the shard. Returns the warnings of all runs.
  std::vector<std::string> commit(const std::vector<std::string>& warnings);

 private:
  void look();
  void begin();
  void take_over();
  void finish_sending();
  [[nodiscard]] bool is_whole(const FinishedFile& file, const std::filesystem::path& home,
                              bool all_bytes, std::vector<std::string>& damages) const;
  [[nodiscard]] bool all_begun_are_whole() const;
  [[nodiscard]] std::filesystem::path begun_home() const;
  // A file's path in home(), by the journal's name.
  [[nodiscard]] std::filesystem::path in_home(const std::string& name) const;

  OutputRequest request_;
  Sibling sibling_;
  std::optional<FarOutput> far_;   // nothing: OUT is a directory
  std::filesystem::path sending_;  // the file that is on its way there, as in home()
  Wanted wanted_;
  Seen seen_;
  Sibling::Into into_ = Sibling::Into::kFree;
  FinishedFiles whole_;  // in OUT, as its manifests say
  FinishedFiles lost_;   // in OUT, and not as its manifests say
  FinishedFiles begun_;  // beside OUT, by the journal
  FinishedFiles made_;   // taken over, or finished by this run
  std::set<std::string> warnings_;
  std::vector<std::string> damages_;
  std::string leftover_;
  std::unique_ptr<Journal> journal_;
  bool resumed_ = false;  // goes on with the journal that was there
  bool complete_ = false;
};

}  // namespace mxfp4
