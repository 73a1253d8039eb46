// Puts a new result in the place of an old one, so that at every moment the old or the new one is
// whole, even if the process is killed. The new result is built in a directory of its own on the
// same file system, and takes the old one's name when it is complete.
//
//   beside   The new directory is .OUT.mxfp4_repack-new in OUT's parent. At the end the two names
//            are exchanged; if the file system cannot do that, OUT is renamed to
//            .OUT.mxfp4_repack-old, and the new directory to OUT.
//   inside   If OUT cannot be renamed (a mount point, the current directory, a directory of an
//            image's lower layer), or lies in a directory that may not be written to, the new
//            directory is OUT/.mxfp4_repack-new. At the end the old files move to
//            OUT/.mxfp4_repack-old, the new ones to OUT. If the run is killed in between, the next
//            run that writes OUT finishes the move.
//
// The old files are removed last. What this program did not write is never removed, but moved back
// to OUT.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "formats/blob/journal.hpp"
#include "formats/output/own_files.hpp"

namespace mxfp4 {

// A replacement that was cut off before its new result was complete.
struct BegunReplacement {
  JournalContent journal;
  std::filesystem::path place;  // the directory that the journal lies in
};

class Replacement {
 public:
  // Makes the directory for the new result. `out` is a directory that the caller has locked; `old`
  // is what it holds, nothing foreign. Removes what an earlier replacement left. Throws
  // Error::output, as do the functions below.
  Replacement(const std::filesystem::path& out, OwnFiles old);
  [[nodiscard]] static std::optional<BegunReplacement> begun(const std::filesystem::path& out);
  // Goes on with the new directory that an interrupted replacement left, if there is one.
  [[nodiscard]] static std::optional<Replacement> interrupted(const std::filesystem::path& out);
  Replacement(Replacement&& other) noexcept;
  Replacement& operator=(Replacement&&) = delete;
  // Removes the new directory if it is empty.
  ~Replacement();

  // Where the new result is written.
  [[nodiscard]] const std::filesystem::path& place() const { return places_.fresh; }
  // Throws if a file in OUT is new or changed since `old` was listed.
  void check_old() const;
  // Gives the new result, whose journal must say ready, the name OUT, and removes the old one.
  // Returns a line about what remains of the old result; empty if nothing does.
  [[nodiscard]] std::string exchange();

  // The folders beside `out` that a replacement uses.
  [[nodiscard]] static std::vector<std::filesystem::path> folders(const std::filesystem::path& out);
  // Finishes a replacement whose process was killed between two renames, when OUT need not exist.
  // Call it before OUT is looked at.
  static void recover(const std::filesystem::path& out);

 private:
  struct Places {
    std::filesystem::path out;       // no link
    std::filesystem::path fresh;     // the new result, until it is complete
    std::filesystem::path old;       // the old result, from then on
    std::filesystem::path arriving;  // inside: the new one, while its files move to OUT
  };
  static Places beside(const std::filesystem::path& out);
  static Places inside(const std::filesystem::path& out);
  static void recover_beside(const Places& places);
  static void recover_inside(const Places& places);
  static void move_out(const Places& places);
  static void move_in(const Places& places);
  // Removes a folder of an earlier replacement, if there is one. Throws if it holds foreign files.
  static void remove_leftover(const std::filesystem::path& folder);

  Replacement(Places places, OwnFiles old);
  void lock();
  std::string remove_old();

  Places places_;
  OwnFiles old_;
  int descriptor_ = -1;  // of the new directory, locked
};

}  // namespace mxfp4
