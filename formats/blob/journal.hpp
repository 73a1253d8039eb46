// What an unfinished conversion has done so far, so that --resume trusts a file only if this very
// conversion wrote it: layer files carry neither the checksum of their content nor the identity of
// the source. Text in OUT: one line an entry, each beginning with its checksum; the first names the
// plan. Appended and synced after each file, removed when the manifest is there. A line that a
// crash cut off is ignored. Its lock also keeps a second process with the same plan away.
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
  std::string name;  // relative to the blob; files of the model directory begin with "../"
  int64_t size = 0;
  std::string xxh3_128;
  std::vector<std::string> tensors;  // of a layer file: XXH3-128 of each
};

struct JournalContent {
  std::string plan;               // its identity
  std::vector<std::string> rest;  // names that this conversion gives files of the model directory
  std::map<std::string, FinishedFile> files;  // by name
  std::set<std::string> warnings;             // that the data of finished files gave rise to
  int64_t bytes = 0;                          // of the sound lines
};

// Empty content when there is no journal, or none that can be read.
[[nodiscard]] JournalContent read_journal(const std::filesystem::path& path);

class Journal {
 public:
  // Locks the file, which is created, without changing it. Throws Error::output when another
  // process holds it.
  explicit Journal(std::filesystem::path path);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  // Starts a journal without finished files. Errors, here and below: Error::output.
  void begin(const std::string& plan, const std::vector<std::string>& rest);
  // Goes on with what read_journal found; a line that a crash cut off goes.
  void resume(const JournalContent& content);
  // Warnings not yet recorded, then the file; durable when it returns.
  void add(const FinishedFile& file, const std::vector<std::string>& warnings);
  [[nodiscard]] const std::set<std::string>& warnings() const { return warnings_; }
  // The conversion is complete.
  void remove();

 private:
  void append(const std::string& text);
  void cut(int64_t bytes);

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::set<std::string> warnings_;
};

}  // namespace mxfp4
