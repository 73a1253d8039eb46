#include "formats/loader/c_api_status.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "formats/loader/gpu/cuda_driver.hpp"
#include "formats/loader/load_source.hpp"
#include "formats/os/input_fault.hpp"
#include "lib/core/error.hpp"
#include "lib/core/visible.hpp"

namespace mxfp4 {
namespace {

// The size is fixed because storing an error's text must not fail. A longer text loses its middle:
// a path may fill it, and the cause is the end.
thread_local std::array<char, 2048> last_error{};
thread_local mxfp4_repack_fault last_fault = MXFP4_REPACK_FAULT_NONE;

constexpr std::string_view kLeftOut = " ... ";

// Whether `text` may be cut before byte `at`: not in the middle of a character.
bool begins_character(std::string_view text, size_t at) {
  return at >= text.size() || (static_cast<uint8_t>(text[at]) & 0xC0U) != 0x80U;
}

// `text` is one line of UTF-8.
void tell_line(std::string_view text) noexcept {
  char* to = last_error.data();
  const auto append = [&](std::string_view part) {
    std::memcpy(to, part.data(), part.size());
    to += part.size();
  };
  if (text.size() < last_error.size()) {
    append(text);
  } else {
    const size_t half = (last_error.size() - 1 - kLeftOut.size()) / 2;
    size_t first = half;
    while (first > 0 && !begins_character(text, first)) --first;
    size_t last = text.size() - half;
    while (!begins_character(text, last)) ++last;
    append(text.substr(0, first));
    append(kLeftOut);
    append(text.substr(last));
  }
  *to = '\0';
}

// Paths and names may hold any bytes: they are shown as the program shows them.
void tell(std::string_view text) noexcept {
  try {
    tell_line(visible(text));
  } catch (...) {
    tell_line("out of memory");
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
  tell_line("");
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

const char* last_error_text() noexcept { return last_error.data(); }

mxfp4_repack_fault last_fault_kind() noexcept { return last_fault; }

}  // namespace mxfp4
