// libFuzzer target: any bytes as the index that the HDF5 process hands over, checked against a file
// of 64 KiB.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/hdf5/hdf5_index.hpp"
#include "tests/fuzz/fuzz_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kFileSize = 64 << 10;
  mxfp4::fuzz::only_input_errors([&] {
    const auto index = mxfp4::decode_hdf5_index(mxfp4::fuzz::text_of(data, size));
    for (const auto& dataset : index.datasets) dataset.check(kFileSize);
  });
  return 0;
}
