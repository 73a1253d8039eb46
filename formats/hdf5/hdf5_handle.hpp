// Owns HDF5 identifiers, and turns the library's error stack into one Error.
#pragma once

#include <hdf5.h>

#include <string_view>
#include <utility>

#include "lib/core/error.hpp"

namespace mxfp4 {

inline constexpr H5Z_filter_t kZstdFilter = 32015;  // by the HDF Group's registry

// Call it before anything else of HDF5: turns off the printing of errors and the loading of plugins
// that the environment names, and registers the zstd filter.
void prepare_hdf5();

// Error::input "<what> (HDF5: <the library's innermost reason>)".
[[nodiscard]] Error hdf5_error(std::string_view what);

// An identifier and the function that releases it.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);

  // Throws hdf5_error(what) if `id` is negative: the call that made it failed.
  Hdf5Handle(hid_t id, Close close, std::string_view what) : id_(id), close_(close) {
    if (id_ < 0) throw hdf5_error(what);
  }
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&&) = delete;
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }

  [[nodiscard]] hid_t get() const { return id_; }

 private:
  hid_t id_;
  Close close_;
};

// The result of a call that returns a negative number on failure; then throws hdf5_error(what).
template <class Result>
Result hdf5_check(Result result, std::string_view what) {
  if (result < 0) throw hdf5_error(what);
  return result;
}

}  // namespace mxfp4
