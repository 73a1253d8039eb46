// Puts a new result in the place of an old one, so that at every moment the old or the new one is
// whole, even if the process is killed. The new result is built in a directory of its own on the
// same file system, and takes the old one's name when it is complete.
//
//   beside   The new directory is .OUT.mxfp4_repack-new in OUT's parent. At the end the two names
//            are exchanged in one step, and the old result is .OUT.mxfp4_repack-old until it is
//            removed.
//   inside   If the two names cannot be exchanged (a mount point, the current directory, a directory of
//            an image's lower layer, a file system that has no such step, a parent that may not be
//            written), the new directory is OUT/.mxfp4_repack-new. At the end the old files move to
//            OUT/.mxfp4_repack-old, the new ones to OUT. If the run is killed in between, the next run
//            that writes OUT finishes the move.
//
// Until the exchange, or the last old file's move, a fault leaves the old result; from then on the
// new one, and the fault is a warning. The old files are removed last. What this program did not
// write is never removed, but moved back to OUT.
//
// OUT, its parent and the new directory are held open from the beginning to the end: who can rename
// them, or put links in their place, stops the replacement, but nothing is written or
// removed elsewhere.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "formats/os/directory.hpp"
#include "formats/output/moved_files.hpp"
#include "formats/output/own_files.hpp"
#include "formats/output/records.hpp"

namespace mxfp4 {

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

  // The replacement that a killed run left beside or in `out`.
  [[nodiscard]] static std::optional<BegunReplacement> begun(const Directory& out);
  // The folders beside `out` that a replacement uses.
  [[nodiscard]] static std::vector<std::filesystem::path> folders(const std::filesystem::path& out);
  // Finishes a replacement whose process was killed between two renames. Call it before OUT is
  // locked and looked at.
  static void recover(const std::filesystem::path& out);

 private:
  void lock() const;
  std::string exchange_beside();
  std::string exchange_inside();
  std::string remove_old(const Directory& from, const std::filesystem::path& path,
                         const std::string& name) const;

  Directory out_;
  ReplacementPlaces places_;
  OwnFiles old_;
  std::optional<Directory> place_;  // the new directory, locked
  bool exchanged_ = false;
};

}  // namespace mxfp4
