// Errors about an input file that say what kind of fault it is, for callers that tell faults apart:
// the C interface and, through it, the classes of Python's errors.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "lib/core/error.hpp"

namespace mxfp4 {

enum class Fault : uint8_t {
  kNone,
  kForm,     // not of the form that a blob has; also every Error::input without a kind of its own
  kMissing,  // a file is not there
  kUnreadable,  // the system does not let us read it, or it is not a regular file
  kSize,        // a file is shorter or longer than it should be
  kChecksum,    // bytes are not those that were written
  kMismatch,    // a file is not the one that the manifest describes
};

// An Error of kind kInput.
class InputFault : public Error {
 public:
  InputFault(Fault fault, std::string message)
      : Error(ErrorKind::kInput, std::move(message)), fault_(fault) {}
  [[nodiscard]] Fault fault() const noexcept { return fault_; }

 private:
  Fault fault_;
};

}  // namespace mxfp4
