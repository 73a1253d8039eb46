#include "formats/hdf5/hdf5_handle.hpp"

#include <fmt/format.h>

#include <string>

#include "formats/hdf5/hdf5_filters.hpp"

namespace mxfp4 {
namespace {

// The walk goes from the failed call outwards; the first entry names the reason.
herr_t keep_first(unsigned n, const H5E_error2_t* entry, void* text) {
  if (n == 0 && entry->desc != nullptr) *static_cast<std::string*>(text) = entry->desc;
  return 0;
}

herr_t keep_first_function(unsigned n, const H5E_error2_t* entry, void* text) {
  if (n == 0 && entry->func_name != nullptr) *static_cast<std::string*>(text) = entry->func_name;
  return 0;
}

}  // namespace

void prepare_hdf5() {
  static const bool kOnce = [] {
    H5open();
    H5PLset_loading_state(0);
    register_zstd_filter();
    return true;
  }();
  (void)kOnce;
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Error hdf5_error(std::string_view what) {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &reason);
  return Error::input(fmt::format("{} (HDF5: {})", what, reason.empty() ? "no reason" : reason));
}

std::string hdf5_error_origin() {
  std::string function;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first_function, &function);
  return function;
}

}  // namespace mxfp4
