// The directory that a command writes: whether it may be used, that nobody else writes it, and that
// a failed run does not leave an empty one behind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace mxfp4 {

enum class OutputMode : uint8_t {
  kNew,      // must not exist, or be empty
  kReplace,  // what an earlier run of this program left goes, the manifests first
  kJoin,     // what an earlier run left stays
};

class OutputDirectory {
 public:
  // Creates `path` and locks it; `shared` locks let several processes in. Throws Error::output when
  // the mode does not allow what is there: any file that this program did not write is refused in
  // every mode.
  OutputDirectory(std::filesystem::path path, OutputMode mode, bool shared = false);
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;
  // Without keep(): removes what is empty of what did not exist before.
  ~OutputDirectory();

  // Removes everything that this program wrote, the manifests first.
  void clear() const;
  // The same for a run that failed, as far as it can be done.
  void discard() const noexcept;
  // All its files, relative to it, folders of ranks and of the blob included.
  [[nodiscard]] std::vector<std::filesystem::path> files() const;
  // Throws Error::output when the file system has less than `bytes` free.
  void reserve(int64_t bytes) const;
  void keep() { keep_ = true; }

 private:
  void lock(bool shared);
  void open(OutputMode mode);

  std::filesystem::path path_;
  int descriptor_ = -1;
  bool existed_ = true;
  bool keep_ = false;
};

// Throws Error::output when one of the inputs lies in `output`, where --force would remove it.
void refuse_inputs_in(const std::filesystem::path& output,
                      const std::vector<std::filesystem::path>& inputs);

// A temporary of a run that is over, if no process writes the directory any more.
[[nodiscard]] bool is_temporary(const std::string& file_name);
// What journals are called: all begin so.
inline constexpr std::string_view kJournalPrefix = ".mxfp4_repack.";

}  // namespace mxfp4
