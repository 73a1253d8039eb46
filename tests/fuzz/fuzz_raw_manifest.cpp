// libFuzzer target: any text as the manifest of a raw dump. Accepted tensors must have the bytes
// that their shapes need.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/checkpoint/raw_source.hpp"
#include "tests/fuzz/fuzz_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mxfp4::fuzz::only_input_errors([&] {
    const auto manifest = mxfp4::parse_raw_manifest(mxfp4::fuzz::text_of(data, size));
    for (const auto& tensor : manifest.tensors) {
      if (tensor.nbytes != tensor.spec.bytes() || tensor.offset < 0) std::abort();
    }
  });
  return 0;
}
