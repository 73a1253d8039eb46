// The journal lists what an unfinished conversion has done so far, so that --resume trusts a file
// only if this very conversion wrote it: layer files carry neither the checksum of their content
// nor the identity of the source. It is a text file in OUT with one entry per line, each beginning
// with its checksum; the first names the plan. A file is recorded, and the record synced, before
// the file gets its name, so the journal knows every file that has its name. A line that a crash
// cut off is ignored. The journal is removed when the manifest is there. Its lock also keeps out a
// second process with the same plan.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/os/directory.hpp"

namespace mxfp4 {

// A file that is complete.
struct FinishedFile {
  std::string name;      // relative to the blob; files of the model directory begin with "../"
  int64_t size = 0;      // bytes
  std::string xxh3_128;  // of the file, 32 hexadecimal digits
  std::vector<std::string> tensors;  // of a layer file: XXH3-128 of each tensor's decoded bytes
};

// The first line: the conversion, its source and the flags that asked for it.
struct JournalHead {
  std::string plan;               // plan_identity
  std::string stamp;              // of the source's files: SourceSeen::stamp
  int64_t layer_files = 0;        // how many there will be
  std::vector<std::string> rest;  // names of the files that it writes to the model directory
  std::map<std::string, std::string> flags;  // that it was begun with
};

struct JournalContent : JournalHead {
  std::map<std::string, FinishedFile> files;  // by name
  std::set<std::string> warnings;             // about the data of finished files
  bool ready = false;                         // every file is written; only the exchange is left
  // Length of the part that can be trusted: the lines before the first bad checksum.
  int64_t bytes = 0;
};

// Empty if there is no journal, or none that can be read.
[[nodiscard]] JournalContent read_journal(const std::filesystem::path& path);
// Whether the file is the beginning of a journal's first line, or nothing, with or without zeros
// behind it: a power cut may leave so much of a journal that had no name yet.
[[nodiscard]] bool is_cut_journal(const std::filesystem::path& path);

class Journal {
 public:
  // Creates the file if it is not there, and locks it. A file that is there is never written to,
  // only replaced, because its name may be a link. Throws Error::output if another process holds
  // the lock, or if it is not a regular file.
  Journal(Directory directory, std::string name);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  // Starts a journal without finished files. Throws Error::output, as do the functions below.
  void begin(const JournalHead& head);
  // Continues the journal that read_journal read; removes a last line that a crash cut off.
  void resume(const JournalContent& content);
  // Records the warnings that are new, and then the file. All is on disk when it returns.
  void add(const FinishedFile& file, const std::vector<std::string>& warnings);
  // Records that every file is written, and only the exchange with the old result is left.
  void ready();
  // Call it when the journal lies in this directory from now on.
  void moved(Directory directory) { directory_ = std::move(directory); }
  [[nodiscard]] const std::set<std::string>& warnings() const { return warnings_; }
  // Removes the journal: the conversion is complete. Returns a line that says so if that fails.
  std::string remove();

 private:
  bool lock_existing();
  bool create();
  [[nodiscard]] bool has_its_name() const;
  // Replaces the file by a new one with this text.
  void replace(std::string_view text);
  void append(std::string_view text);

  [[nodiscard]] std::filesystem::path path() const { return directory_.path() / name_; }

  Directory directory_;
  std::string name_;
  int descriptor_ = -1;
  std::set<std::string> warnings_;
};

}  // namespace mxfp4
