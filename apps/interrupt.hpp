// Turns SIGINT, SIGTERM and SIGHUP into an exception at a place where stopping is clean, so that
// destructors remove what is half done.
#pragma once

#include <exception>

namespace mxfp4 {

class Interrupted : public std::exception {
 public:
  Interrupted(int signal, const char* afterwards) : signal_(signal), afterwards_(afterwards) {}
  // The code with which a shell reports a process that died of the signal: 129, 130, 143.
  [[nodiscard]] int exit_code() const { return 128 + signal_; }
  // Tells the user in which state the output is left.
  [[nodiscard]] const char* what() const noexcept override { return afterwards_; }

 private:
  int signal_;
  const char* afterwards_;
};

// From now on the first of these signals is only noted; a signal that comes more than a second
// later kills as usual. A signal that the parent process ignored stays ignored. `afterwards` is the
// text of Interrupted and must be a literal.
void watch_signals(const char* afterwards);

// Throws Interrupted if a signal came.
void check_interrupted();

}  // namespace mxfp4
