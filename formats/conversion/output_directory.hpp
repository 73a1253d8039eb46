// The directory that a command writes: whether it may be used, the lock that keeps other writers
// out, where its files go until they are complete, and that a failed run leaves nothing of its own
// behind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/conversion/replacement.hpp"

namespace mxfp4 {

enum class OutputMode : uint8_t {
  kNew,      // must not exist, or be empty
  kReplace,  // what an earlier run of this program left stays until publish()
  kJoin,     // what an earlier run left stays
};

class OutputDirectory {
 public:
  // Creates `path` and locks it; `shared` locks let several processes in. `between` is called while
  // files are read, and may throw. Throws Error::output when the mode does not allow what is there:
  // any file that this program did not write is refused in every mode. With `look_only` the same is
  // thrown and nothing is changed, made or left.
  OutputDirectory(std::filesystem::path path, OutputMode mode, bool shared = false,
                  const std::function<void()>& between = {}, bool look_only = false);
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;
  // Without keep(): removes what is empty of what did not exist before.
  ~OutputDirectory();

  // Where files are written: `path`, or a directory that takes its place in publish().
  [[nodiscard]] const std::filesystem::path& home() const {
    return replacement_ ? replacement_->place() : path_;
  }
  [[nodiscard]] bool replaces() const { return replacement_.has_value(); }
  // Bytes that the file system has free; nothing where it cannot tell.
  [[nodiscard]] std::optional<int64_t> free_bytes() const;
  // Goes on with what a killed run in mode kReplace left; false: none did.
  bool resume_replacement();
  // Everything is complete under home(), and its journal says ready. With kReplace the old result
  // goes now. Returns what could not be removed, as a line; empty: nothing.
  std::string publish();

  // After a failure: removes what this run wrote, as far as that can be done.
  void discard() const noexcept;
  // All files in home(), relative to it, folders of ranks and of the blob included.
  [[nodiscard]] std::vector<std::filesystem::path> files() const;
  // Throws Error::output where the system does not let us write into `path`, or create it.
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

// Throws Error::output when one of the inputs lies in `output`, or is a file in it under another
// name: a link, or the same file seen through another mount.
void refuse_inputs_in(const std::filesystem::path& output,
                      const std::vector<std::filesystem::path>& inputs);

}  // namespace mxfp4
