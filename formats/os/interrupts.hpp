// A system call that a signal interrupted is made again; but not for ever, since a file system that
// says so each time would hang the program.
#pragma once

#include <cerrno>

namespace mxfp4 {

class Interrupts {
 public:
  // After a call that failed: whether to make it again. False, too, once 1000 calls were
  // interrupted.
  [[nodiscard]] bool again() { return errno == EINTR && ++count_ < 1000; }

 private:
  int count_ = 0;
};

}  // namespace mxfp4
