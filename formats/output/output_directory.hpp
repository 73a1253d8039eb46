// The directory that a command writes to. Decides whether it may be used, locks other writers out,
// says where files go until the result is complete, and cleans up after a failed run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/output/replacement.hpp"

namespace mxfp4 {

enum class OutputMode : uint8_t {
  kNew,      // must not exist, or be empty
  kReplace,  // may hold what an earlier run of this program wrote, which stays until publish()
  kJoin,     // may hold what an earlier run wrote, which stays
};

class OutputDirectory {
 public:
  // Creates `path` and locks it; several processes may hold a `shared` lock. Calls `between` while
  // files are read; it may throw. Throws Error::output if the mode does not allow what is there;
  // every mode refuses files that this program did not write. With `look_only`, throws the same,
  // and changes nothing.
  OutputDirectory(std::filesystem::path path, OutputMode mode, bool shared = false,
                  const std::function<void()>& between = {}, bool look_only = false);
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;
  // Without keep(): if the constructor created `path`, removes it unless it holds files.
  ~OutputDirectory();

  // Where files are written: `path`, or the directory that publish() puts in its place.
  [[nodiscard]] const std::filesystem::path& home() const {
    return replacement_ ? replacement_->place() : path_;
  }
  [[nodiscard]] bool replaces() const { return replacement_.has_value(); }
  // Bytes that are free in the file system; nullopt if it cannot say.
  [[nodiscard]] std::optional<int64_t> free_bytes() const;
  // Goes on with the replacement that a killed run in mode kReplace left; false if there is none.
  bool resume_replacement();
  // Call it when everything in home() is complete and the journal says ready. With kReplace it puts
  // the new result in place and removes the old one. Returns a line about what could not be
  // removed; empty if all could.
  std::string publish();

  // Removes what this run wrote, as far as possible: for use after a failure.
  void discard() const noexcept;
  // All files in home() and in its folders of ranks and of the blob, relative to home(). Throws
  // Error::output if this program did not write one of them.
  [[nodiscard]] std::vector<std::filesystem::path> files() const;
  // Throws Error::output if the system does not let us write into `path`, or create it.
  void require_writable() const;
  // Throws Error::output when the file system has less than `bytes` free.
  void reserve(int64_t bytes) const;
  void keep() { keep_ = true; }

 private:
  void lock(bool shared);
  void open(OutputMode mode, const std::function<void()>& between);

  std::filesystem::path path_;
  std::optional<Replacement> replacement_;
  bool look_only_ = false;
  bool would_replace_ = false;
  int descriptor_ = -1;
  bool existed_ = true;
  bool keep_ = false;
};

// Throws Error::output if one of the inputs lies in `output`, also if its path does not show it:
// through a link, or through another mount of the same volume.
void refuse_inputs_in(const std::filesystem::path& output,
                      const std::vector<std::filesystem::path>& inputs);

// Throws Error::usage if `output` would make a blob of the directory that `checkpoint` is or lies in:
// if it is, or lies in, a folder there that has the name of a blob's folder or of a rank's.
void refuse_blob_folder_in(const std::filesystem::path& checkpoint,
                           const std::filesystem::path& output);

}  // namespace mxfp4
