#include "formats/hdf5/hdf5_handle.hpp"

#include <fmt/format.h>
#include <zstd.h>

#include <string>

namespace mxfp4 {
namespace {

// The walk goes from the failed call outwards; the first entry names the reason.
herr_t keep_first(unsigned n, const H5E_error2_t* entry, void* text) {
  if (n == 0 && entry->desc != nullptr) *static_cast<std::string*>(text) = entry->desc;
  return 0;
}

// The filter's H5Z_func_t: decodes *buf and returns the new length; 0 on failure.
size_t decode_zstd(unsigned flags, size_t /*num_params*/, const unsigned* /*params*/, size_t length,
                   size_t* capacity, void** buf) {
  constexpr uint64_t kMaxDecoded = uint64_t{1} << 32;  // HDF5 allows no larger chunk
  // ZSTD_CONTENTSIZE_UNKNOWN and _ERROR are larger than kMaxDecoded.
  const uint64_t bound = ZSTD_getFrameContentSize(*buf, length);
  if ((flags & H5Z_FLAG_REVERSE) == 0 || bound == 0 || bound > kMaxDecoded) return 0;
  void* out = H5allocate_memory(bound, false);
  if (out == nullptr) return 0;
  const size_t size = ZSTD_decompress(out, bound, *buf, length);
  if (ZSTD_isError(size) != 0) {
    H5free_memory(out);
    return 0;
  }
  H5free_memory(*buf);
  *buf = out;
  *capacity = bound;
  return size;
}

}  // namespace

void prepare_hdf5() {
  constexpr H5Z_class2_t kZstd = {.version = H5Z_CLASS_T_VERS,
                                  .id = kZstdFilter,
                                  .encoder_present = 0,
                                  .decoder_present = 1,
                                  .name = "zstd",
                                  .can_apply = nullptr,
                                  .set_local = nullptr,
                                  .filter = decode_zstd};
  H5open();
  H5PLset_loading_state(0);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  if (H5Zregister(&kZstd) < 0) throw Error::internal("HDF5 does not accept the zstd filter");
}

Error hdf5_error(std::string_view what) {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &reason);
  Error error =
      Error::input(fmt::format("{} (HDF5: {})", what, reason.empty() ? "no reason" : reason));
  if (reason.find("version") != std::string::npos) {
    error.hint("if a newer HDF5 wrote the file, write it again for an older one (h5repack)");
  }
  return error;
}

}  // namespace mxfp4
