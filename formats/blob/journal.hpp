// The journal is the record of what one process of a conversion has done: --resume trusts a file
// only if this very conversion wrote it, and finalize puts the shards together by their journals.
// It is a text file with one entry per line, each beginning with its checksum; the first holds the
// plan: the manifests without what depends on the data. A file is recorded, and the record synced,
// before the file gets its name, so the journal knows every file that has its name. A line that a
// crash cut off is ignored. Its lock also keeps out a second process with the same plan.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/os/directory.hpp"
#include "lib/plan/shard.hpp"

namespace mxfp4 {

// A file that is complete.
struct FinishedFile {
  std::string name;      // relative to the blob; files of the model directory begin with "../"
  int64_t size = 0;      // bytes
  std::string xxh3_128;  // of the file, 32 hexadecimal digits
  std::vector<std::string> tensors{};  // of a layer file: XXH3-128 of each tensor's decoded bytes
};
using FinishedFiles = std::map<std::string, FinishedFile>;  // by name

// Describes the source that a run read. All shards must see the same files at the same path of
// the same machine; other machines may have copies.
struct SourceSeen {
  std::string machine;  // empty: not known
  std::string place;    // checksum of the absolute path, which need not be UTF-8
  std::string stamp;    // of names, sizes and modification times of all files
  // Whether the source changed between two shards that read it at the same place.
  [[nodiscard]] bool contradicts(const SourceSeen& other) const {
    return !machine.empty() && machine == other.machine && place == other.place &&
           stamp != other.stamp;
  }
};

// The first line.
struct JournalHead {
  std::string plan{};               // plan_identity
  std::vector<Manifest> planned{};  // one a rank; no data
  SourceSeen source{};
  std::optional<Shard> shard{};
};

struct JournalContent : JournalHead {
  FinishedFiles files{};
  std::set<std::string> warnings{};  // about the data of finished files
  bool ready = false;                // every file is written, and the source did not change
  // Length of the part that can be trusted: the lines before the first bad checksum.
  int64_t bytes = 0;
};

// "progress", or "shard-000-of-004.progress".
[[nodiscard]] std::string journal_name(const std::optional<Shard>& shard);
inline constexpr const char* kFarJournal = "mxfp4_repack.progress";  // in object storage

// Empty if there is no journal, or what there is is none. Throws Error::input for a file that the
// system does not let us read.
[[nodiscard]] JournalContent read_journal(const std::filesystem::path& path);

// The journals in a directory, or an address, in the order of their names; none if it is not there.
// Throws as read_journal.
[[nodiscard]] std::vector<JournalContent> read_journals(const std::filesystem::path& directory);

// The planned manifests with what `files` say of their files. Throws Error::input naming a file
// that is not among them.
[[nodiscard]] std::vector<Manifest> filled(std::vector<Manifest> planned,
                                           const FinishedFiles& files);

// The layer files that a manifest names, and the files of the model directory around the blob.
[[nodiscard]] std::vector<FinishedFile> files_of(const Manifest& manifest);
[[nodiscard]] std::vector<FinishedFile> rest_of(const Manifest& manifest);

class Journal {
 public:
  // Creates the file if it is not there, and locks it. A file that is there is never written to,
  // only replaced. Throws Error::output if another process holds the lock, or if it is not a
  // regular file.
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
  // Records that every file is written.
  void ready();
  [[nodiscard]] const std::set<std::string>& warnings() const { return warnings_; }
  // A run that finished no file needs none.
  void remove() const { directory_.remove(name_); }

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
