// Puts a new result in the place of an old one, so that at every moment the old or the new one is
// whole, even if the process is killed. The new result is built in .OUT.mxfp4_repack-new in OUT's
// parent. When it is complete the two names are exchanged in one step, and the old result is
// .OUT.mxfp4_repack-old until it is removed. An OUT whose name cannot be exchanged (a mount point,
// the current directory, a file system that has no such step) is refused before any work.
//
// Until the exchange a fault leaves the old result; from then on the new one, and the fault is a
// warning. What this program did not write is never removed.
//
// OUT, its parent and the new directory are held open from the beginning to the end: nothing is
// written or removed elsewhere if one of them gets another name.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "formats/os/directory.hpp"
#include "formats/output/own_files.hpp"
#include "formats/output/records.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

// What is said of a directory that another process holds.
[[nodiscard]] Error another_process_writes(const std::filesystem::path& out);

// The names that a replacement uses in OUT's parent.
struct ReplacementPlaces {
  Directory holder;   // the parent
  std::string out;    // OUT
  std::string fresh;  // the new result, until it is complete
  std::string old;    // the old result, from then on
};

// A replacement that was cut off before its new result was complete.
struct BegunReplacement {
  ReplacementPlaces places;
  Directory fresh;  // its new directory
  BegunRun run;     // that writes there
};

class Replacement {
 public:
  // Makes the directory for the new result. `out` is a directory that the caller has locked; `old`
  // is what it holds, nothing foreign. Removes what an earlier replacement left. Throws
  // Error::output, as do the functions below.
  Replacement(const Directory& out, OwnFiles old);
  // Goes on with one that was cut off.
  Replacement(const Directory& out, OwnFiles old, BegunReplacement begun);
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  // Removes the new directory if it is empty.
  ~Replacement();

  // Where the new result is written; OUT after exchange().
  [[nodiscard]] const Directory& place() const { return *place_; }
  // Throws if a file in OUT is new or changed since `old` was listed.
  void check_old() const;
  // Gives the new result, whose journal must say ready, the name OUT, and removes the old one.
  // Returns a line about what remains of the old result; empty if nothing does.
  [[nodiscard]] std::string exchange();

  // The replacement that a killed run left beside `out`.
  [[nodiscard]] static std::optional<BegunReplacement> begun(const Directory& out);
  // The folders beside `out` that a replacement uses.
  [[nodiscard]] static std::vector<std::filesystem::path> folders(const std::filesystem::path& out);
  // Gives an old result its name if the process was killed right after the exchange. Call it before
  // OUT is locked and looked at.
  static void recover(const std::filesystem::path& out);

 private:
  void lock() const;

  Directory out_;
  ReplacementPlaces places_;
  OwnFiles old_;
  std::optional<Directory> place_;  // the new directory, locked
  bool exchanged_ = false;
};

}  // namespace mxfp4
