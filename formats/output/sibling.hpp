// The directory beside OUT in which a result is built, from its first byte until it is complete.
// OUT/../.OUT.mxfp4_repack-new holds the journals of the runs that build it, and the folder
// `result`, which publish() gives the name OUT in one step: at every moment OUT is what it was, or
// the new result, whole, even if the process is killed. What lies beside OUT afterwards is removed.
//
// OUT's parent and the sibling are held open from the beginning to the end: nothing is written or
// removed elsewhere if one of them gets another name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "formats/os/directory.hpp"

namespace mxfp4 {

// The sibling of `out`, which need not exist, and its folder of the result. An address is where its
// journal lies itself; the sibling, in TMPDIR, holds what is on its way there.
[[nodiscard]] std::filesystem::path sibling_of(const std::filesystem::path& out);
inline constexpr const char* kResultFolder = "result";

class Sibling {
 public:
  // Locks the sibling of `out` if it is there; several processes may hold a `shared` lock. Throws
  // Error::output for an `out` that no run can use: inside a blob, not a directory; or if another
  // process holds the lock.
  explicit Sibling(std::filesystem::path out, bool shared = false);
  Sibling(const Sibling&) = delete;
  Sibling& operator=(const Sibling&) = delete;
  // Without keep(): removes what make() made if no other process uses it.
  ~Sibling();

  [[nodiscard]] const std::filesystem::path& out() const { return out_; }
  // Whether OUT is there and holds something; an address, beside an unfinished run's files.
  [[nodiscard]] bool occupied() const;
  [[nodiscard]] bool there() const { return place_.has_value(); }

  // Locks the sibling if it has come since. Throws Error::output if another process holds the lock.
  void lock_if_there();
  // Creates the sibling and the result's folder where they are missing, and locks the first.
  void make();
  // Where journals lie, and where the result is built.
  [[nodiscard]] const Directory& place() const { return *place_; }
  [[nodiscard]] const Directory& result() const { return *result_; }
  // Throws Error::output unless OUT, if there is one, can change its name; the kernel is asked. If
  // OUT is `occupied`, the two have to change names in one step.
  void require_exchange() const;
  // From here on, a run that is stopped leaves what it made.
  void keep() { keep_ = true; }

  enum class Into { kFree, kRanks, kOther };
  // Call it when the result is complete and the journal says ready. OUT is free, and becomes the
  // result; or it holds ranks or files of the same conversion, to which those of the result are
  // added; or the two are exchanged. Returns a line about what could not be removed afterwards;
  // empty if all could.
  std::string publish(Into into);
  // Removes the sibling, or what is in it. With `replaced` it may hold an old result: then a file
  // that this program did not write is an Error::output, and everything stays.
  void remove(bool replaced);
  void clear(bool replaced);

  // Bytes that are free in the file system; nullopt if it cannot say.
  [[nodiscard]] std::optional<int64_t> free_bytes() const;
  // Throws Error::output if the system does not let us create the sibling.
  void require_writable() const;
  // Throws Error::output when the file system has less than `bytes` free.
  void reserve(int64_t bytes) const;

 private:
  void open(bool create);

  std::filesystem::path out_;
  std::filesystem::path parent_;
  std::string name_;     // of OUT, in its parent
  std::string sibling_;  // name
  bool shared_ = false;
  bool keep_ = false;
  bool made_it_ = false;
  std::optional<Directory> holder_;
  std::optional<Directory> place_;  // locked
  std::optional<Directory> result_;
};

}  // namespace mxfp4
