// What an unfinished conversion has done so far, so that --resume trusts a file only if this very
// conversion wrote it: layer files carry neither the checksum of their content nor the identity of
// the source. Text in OUT: one line an entry, each beginning with its checksum; the first names the
// plan. A file is recorded, and the record synced, before the file has its name, so every file under
// its name is one that the journal knows. Removed when the manifest is there. A line that a crash
// cut off is ignored. Its lock also keeps a second process with the same plan away.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace mxfp4 {

// A file that is complete under its name.
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
  std::vector<std::string> rest;  // names that this conversion gives files of the model directory
  std::map<std::string, std::string> flags;  // with which it was begun
};

struct JournalContent : JournalHead {
  std::map<std::string, FinishedFile> files;  // by name
  std::set<std::string> warnings;             // that the data of finished files gave rise to
  bool ready = false;                         // every file is written; the exchange is left
  int64_t bytes = 0;                          // of the lines whose checksums hold
};

// Empty content when there is no journal, or none that can be read.
[[nodiscard]] JournalContent read_journal(const std::filesystem::path& path);

class Journal {
 public:
  // Locks the file, which is created, without changing it. What has its name already is never
  // written: a link could lead anywhere. Throws Error::output when another process holds it, or
  // when it is no regular file.
  explicit Journal(std::filesystem::path path);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  // Starts a journal without finished files. Errors, here and below: Error::output.
  void begin(const JournalHead& head);
  // Goes on with what read_journal found; a last line that a crash cut off is removed.
  void resume(const JournalContent& content);
  // Records the warnings that are new, then the file; both are on disk when it returns.
  void add(const FinishedFile& file, const std::vector<std::string>& warnings);
  // Records that every file is written, and only the exchange with the old result is left.
  void ready();
  // To be told when the directory of the journal was renamed.
  void moved(std::filesystem::path path) { path_ = std::move(path); }
  [[nodiscard]] const std::set<std::string>& warnings() const { return warnings_; }
  // Removes the journal: the conversion is complete.
  void remove();

 private:
  bool lock_existing();
  bool create();
  // Puts a new file with this text in the place of the old one.
  void replace(std::string_view text);
  void append(std::string_view text);

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::set<std::string> warnings_;
};

}  // namespace mxfp4
