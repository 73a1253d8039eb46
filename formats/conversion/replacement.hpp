// Puts a new result in the place of an old one, so that whatever happens at whatever moment the old
// or the new one is whole. The new one is built in a directory of its own on the same file system,
// and takes the old one's name when it is complete.
//
//   beside   OUT's parent holds .OUT.mxfp4_repack-new. At the end the two names are exchanged, or,
//            where a file system cannot, OUT becomes .OUT.mxfp4_repack-old and the new one OUT.
//   inside   where OUT is a mount point, the current directory, or in a directory that may not be
//            written: OUT/.mxfp4_repack-new. At the end the old files move to
//            OUT/.mxfp4_repack-old, the new ones to OUT. A run that is killed between the two is
//            carried on by the next that writes OUT.
//
// The old files go last. Whatever this program did not write is never removed: it moves back to OUT.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "formats/conversion/own_files.hpp"

namespace mxfp4 {

class Replacement {
 public:
  // Makes the directory for the new result. `out` is a directory, locked by the caller; `old` what it
  // holds, nothing foreign. What an earlier replacement left is removed. Errors, here and below:
  // Error::output.
  Replacement(const std::filesystem::path& out, OwnFiles old);
  // Goes on with the directory that an interrupted one left, if there is one.
  [[nodiscard]] static std::optional<Replacement> interrupted(const std::filesystem::path& out);
  Replacement(Replacement&& other) noexcept;
  Replacement& operator=(Replacement&&) = delete;
  // Removes the new directory as far as it is empty.
  ~Replacement();

  // Where the new result is written.
  [[nodiscard]] const std::filesystem::path& place() const { return places_.fresh; }
  // Throws when OUT holds what it did not hold before, or is no longer what it was.
  void check_old() const;
  // Gives the new result, whose journal says that it is ready, the name OUT, and removes the old
  // one. Returns what remains of that and where; empty: nothing.
  [[nodiscard]] std::string exchange();

  // Where replacements of `out` put what does not lie in it.
  [[nodiscard]] static std::vector<std::filesystem::path> folders(const std::filesystem::path& out);
  // Finishes what a killed process left between its two steps; OUT need not exist. To be called
  // before OUT is looked at.
  static void recover(const std::filesystem::path& out);

 private:
  struct Places {
    std::filesystem::path out;       // no link
    std::filesystem::path fresh;     // the new result, until it is complete
    std::filesystem::path old;       // the old one, from then on
    std::filesystem::path arriving;  // inside: the new one, while its files move to OUT
  };
  static Places beside(const std::filesystem::path& out);
  static Places inside(const std::filesystem::path& out);
  static void recover_beside(const Places& places);
  static void recover_inside(const Places& places);
  static void move_out(const Places& places);
  static void move_in(const Places& places);
  // An entry's evidence is its content, as ever. Nothing when there is no such folder.
  static void remove_leftover(const std::filesystem::path& folder);

  Replacement(Places places, OwnFiles old);
  void lock();
  std::string remove_old();

  Places places_;
  OwnFiles old_;
  int descriptor_ = -1;  // of the new directory, locked
};

}  // namespace mxfp4
