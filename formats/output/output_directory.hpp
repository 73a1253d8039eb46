// The directory that a command writes to: locks other writers out, says where files go until the
// result is complete, and cleans up after a failed run. What may happen to what lies there already:
// states.hpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/output/replacement.hpp"

namespace mxfp4 {

// Throws Error::output for a path inside another result: what is written there would be foreign to
// that result's own --resume, --shard and --force.
void refuse_inside_blob(const std::filesystem::path& path);

class OutputDirectory {
 public:
  // Creates `path` and locks it; several processes may hold a `shared` lock. Finishes a replacement
  // that was cut off between two renames. Throws Error::output for a path that no run can use:
  // inside a blob, not a directory, locked by another process, with one of the `inputs` in it. With
  // `look_only`, throws the same, and changes nothing, not even a time.
  explicit OutputDirectory(std::filesystem::path path,
                           const std::vector<std::filesystem::path>& inputs = {},
                           bool shared = false, bool look_only = false);
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;
  // Without keep(): removes `path` and its parents if the constructor created them, unless they
  // hold files.
  ~OutputDirectory();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Without `look_only`, it always exists.
  [[nodiscard]] bool exists() const;
  [[nodiscard]] bool is_empty() const;
  // Builds the new result beside what is there, which stays until publish(); or goes on with what a
  // killed run `begun`. Calls `between` while files are read; it may throw. Throws Error::output if
  // a file's content does not show that this program wrote it.
  void replace(const std::function<void()>& between,
               const std::optional<BegunReplacement>& begun = {});
  // The replacement that a killed run left.
  [[nodiscard]] std::optional<BegunReplacement> begun_replacement() const;

  // Where files are written: `path`, or the directory that publish() puts in its place. Held open,
  // so that nothing is written elsewhere if somebody gives its path to another directory.
  [[nodiscard]] const Directory& home() const {
    return replacement_ ? replacement_->place() : directory_.value();
  }
  [[nodiscard]] bool replaces() const { return replaces_; }
  // False where the file system has no locks: other processes may be writing here.
  [[nodiscard]] bool locked() const { return locked_; }
  // Bytes that are free in the file system; nullopt if it cannot say.
  [[nodiscard]] std::optional<int64_t> free_bytes() const;
  // Throws Error::output if `path` leads to another directory by now: the result would lie
  // elsewhere. Call it before the first manifest is written.
  void require_in_place() const;
  // Call it when everything in home() is complete and the journal says ready. After replace() it
  // puts the new result in place and removes the old one. Returns a line about what could not be
  // removed; empty if all could.
  std::string publish();

  // All files in home() and in its folders of ranks and of the blob, relative to home(); none if it
  // does not exist. Throws Error::output if this program did not write one of them.
  [[nodiscard]] std::vector<std::filesystem::path> files() const;
  // Throws Error::output if the system does not let us write into `path`, or create it.
  void require_writable() const;
  // Throws Error::output when the file system has less than `bytes` free; the hint ends
  // with `otherwise`.
  void reserve(int64_t bytes, std::string_view otherwise = {}) const;
  void keep() {
    keep_ = true;
    made_.keep();
  }

 private:
  void lock(bool shared);

  std::filesystem::path path_;
  std::optional<Directory> directory_;  // locked; none if `look_only` and there is none
  std::optional<Replacement> replacement_;
  bool look_only_ = false;
  bool locked_ = false;
  bool replaces_ = false;  // or would, without `look_only`
  bool is_new_ = false;    // `path` did not exist
  bool keep_ = false;
  MadeDirectories made_;  // `path` and its parents; last, so that they go while the lock is held
};

}  // namespace mxfp4
