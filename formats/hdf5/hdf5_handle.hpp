// Owns HDF5 identifiers, and turns the library's error stack into one Error.
#pragma once

#include <hdf5.h>

#include <string>
#include <string_view>
#include <utility>

#include "lib/core/error.hpp"

namespace mxfp4 {

// Must be called before a thread uses HDF5, since error stacks are per thread: turns off the
// printing of errors and the loading of plugins that the environment names, and registers the zstd
// filter. Cheap when repeated.
void prepare_hdf5();

// Error::input "<what>: <the library's innermost reason>".
[[nodiscard]] Error hdf5_error(std::string_view what);

// The library's function in which the last failed call met its error; empty if it does not say.
[[nodiscard]] std::string hdf5_error_origin();

// An identifier and the function that releases it.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Hdf5Handle() = default;
  // Throws hdf5_error(what) if `id` is negative: the call that made it failed.
  Hdf5Handle(hid_t id, Close close, std::string_view what) : id_(id), close_(close) {
    if (id_ < 0) throw hdf5_error(what);
  }
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }

  [[nodiscard]] hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

// The result of a call that returns a negative number on failure; then throws hdf5_error(what).
template <class Result>
Result hdf5_check(Result result, std::string_view what) {
  if (result < 0) throw hdf5_error(what);
  return result;
}

}  // namespace mxfp4
