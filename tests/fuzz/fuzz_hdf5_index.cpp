// libFuzzer target: any bytes as the index that the HDF5 process hands over, checked against a file
// of 64 KiB.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/hdf5_index.hpp"
#include "lib/core/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kFileSize = 64 << 10;
  try {
    const auto index =
        mxfp4::decode_hdf5_index(std::string_view(reinterpret_cast<const char*>(data), size));
    for (const auto& dataset : index.datasets) dataset.check(kFileSize);
  } catch (const mxfp4::Error& error) {
    if (error.kind() != mxfp4::ErrorKind::kInput) std::abort();
  }
  return 0;
}
