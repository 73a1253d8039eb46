#include "formats/loader/c_api_status.hpp"

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "formats/loader/gpu/cuda_driver.hpp"
#include "formats/loader/load_source.hpp"
#include "formats/os/input_fault.hpp"
#include "lib/core/error.hpp"
#include "lib/core/visible.hpp"

namespace mxfp4 {
namespace {

thread_local std::string last_error;
thread_local bool no_memory = false;  // for the words
thread_local mxfp4_repack_fault last_fault = MXFP4_REPACK_FAULT_NONE;

// Paths and names may hold any bytes: they are shown as the program shows them.
void tell(std::string_view text) noexcept {
  try {
    last_error = visible(text);
    no_memory = false;
  } catch (...) {
    no_memory = true;
  }
}

mxfp4_repack_fault fault_of(const Error& error) {
  if (const auto* found = dynamic_cast<const InputFault*>(&error)) {
    return static_cast<mxfp4_repack_fault>(found->fault());
  }
  return error.is_unreadable() ? MXFP4_REPACK_FAULT_UNREADABLE : MXFP4_REPACK_FAULT_FORM;
}
static_assert(static_cast<int>(Fault::kForm) == MXFP4_REPACK_FAULT_FORM &&
              static_cast<int>(Fault::kMissing) == MXFP4_REPACK_FAULT_MISSING &&
              static_cast<int>(Fault::kUnreadable) == MXFP4_REPACK_FAULT_UNREADABLE &&
              static_cast<int>(Fault::kSize) == MXFP4_REPACK_FAULT_SIZE &&
              static_cast<int>(Fault::kChecksum) == MXFP4_REPACK_FAULT_CHECKSUM &&
              static_cast<int>(Fault::kMismatch) == MXFP4_REPACK_FAULT_MISMATCH);

mxfp4_repack_status status_of(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::kUsage:
      return MXFP4_REPACK_USAGE;
    case ErrorKind::kInput:
      return MXFP4_REPACK_INPUT;
    case ErrorKind::kUnsupported:
      return MXFP4_REPACK_UNSUPPORTED;
    case ErrorKind::kOutput:
    case ErrorKind::kInternal:
      break;
  }
  return MXFP4_REPACK_INTERNAL;
}

mxfp4_repack_status reported(mxfp4_repack_status status, std::string_view text) noexcept {
  tell(text);
  return status;
}

}  // namespace

void forget_error() noexcept {
  last_error.clear();
  no_memory = false;
  last_fault = MXFP4_REPACK_FAULT_NONE;
}

mxfp4_repack_status status_of_exception() noexcept {
  try {
    throw;
  } catch (const Cancelled&) {
    return reported(MXFP4_REPACK_CANCELLED, "cancelled");
  } catch (const GpuError& error) {
    return reported(MXFP4_REPACK_NO_GPU, error.what());
  } catch (const Error& error) {
    const mxfp4_repack_status status = status_of(error);
    if (status == MXFP4_REPACK_INPUT) last_fault = fault_of(error);
    return reported(status, error.what());
  } catch (const std::bad_alloc&) {
    return reported(MXFP4_REPACK_NO_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return reported(MXFP4_REPACK_INTERNAL, error.what());
  } catch (...) {
    return reported(MXFP4_REPACK_INTERNAL, "an unknown exception");
  }
}

const char* last_error_text() noexcept { return no_memory ? "out of memory" : last_error.c_str(); }

mxfp4_repack_fault last_fault_kind() noexcept { return last_fault; }

}  // namespace mxfp4
