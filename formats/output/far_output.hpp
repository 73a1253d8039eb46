// OUT on object storage. Files are built in the sibling, in TMPDIR, and sent one after another, each
// in parts side by side. While the run is unfinished its journal lies in OUT, as kFarJournal, where
// another run meets it or goes on with it, on another machine too. Each put of the journal requires
// the one before, so that of two writers one stops. No manifest stands there until all else does.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/remote/far_folder.hpp"
#include "formats/remote/files_at.hpp"

namespace mxfp4 {

// Names are of objects below OUT. Errors: Error::output, of what is only looked at Error::input.
class FarOutput {
 public:
  explicit FarOutput(std::string out);
  // Parts of a file that is not finished are given up.
  ~FarOutput();

  // Puts the journal. Throws if the one there is not the one that this run saw or put last.
  void record(const std::filesystem::path& journal);
  void remove_journal();
  // Removes a blob's files, manifests first, so that no reader sees a mixture.
  void clear();
  // Begins to send a file, and goes on while the caller does; finish() waits until it is there.
  void send(const std::string& name, const std::filesystem::path& from);
  void finish();
  // Puts the indexes and manifests of the blob, which is the folder `blob`, and removes the journal.
  // Unless `again`, no manifest may be there.
  void complete(const std::filesystem::path& blob, const std::vector<Manifest>& manifests,
                bool again);

 private:
  [[nodiscard]] std::shared_ptr<FarFile> object(const std::string& name,
                                                const std::string& query = "") const;
  FarTicket ask(const std::string& method, std::shared_ptr<FarFile> object,
                const std::string& text = "", const std::string& condition = "");
  std::string put(const std::string& name, const std::string& text, const std::string& condition);

  std::string out_;
  std::optional<Fetcher> fetcher_{std::in_place};
  FarFolder folder_;
  std::shared_ptr<FarSession> listed_ = keep_far_files();
  std::string tag_;  // of the journal that this run saw or put last; empty: none
  std::string own_;  // ends this run's journals as a line that was cut off, which nobody reads
  std::shared_ptr<FarFile> sent_;  // on its way, and its parts
  std::vector<FarTicket> parts_;
};

}  // namespace mxfp4
