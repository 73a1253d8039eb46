// How mxfp4_repack.h reports errors: a status is returned, and the calling thread keeps the words
// of its last error and which kind of fault it was.
#pragma once

#include "formats/loader/mxfp4_repack.h"

namespace mxfp4 {

// Before a call: the thread has met no error.
void forget_error() noexcept;
// In a catch block: the status of the exception, whose words the thread keeps.
[[nodiscard]] mxfp4_repack_status status_of_exception() noexcept;

// One line of UTF-8, empty after a call without an error. Valid until the thread's next call.
[[nodiscard]] const char* last_error_text() noexcept;
[[nodiscard]] mxfp4_repack_fault last_fault_kind() noexcept;

// Calls `body`; no exception leaves it.
template <class Body>
mxfp4_repack_status guarded(const Body& body) noexcept {
  try {
    forget_error();
    body();
    return MXFP4_REPACK_OK;
  } catch (...) {
    return status_of_exception();
  }
}

}  // namespace mxfp4
