// libFuzzer target: any text as the manifest of a raw dump. Accepted tensors must have the bytes
// that their shapes need.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/raw_source.hpp"
#include "lib/core/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto manifest =
        mxfp4::parse_raw_manifest(std::string_view(reinterpret_cast<const char*>(data), size));
    for (const auto& tensor : manifest.tensors) {
      if (tensor.nbytes != tensor.spec.bytes() || tensor.offset < 0) std::abort();
    }
  } catch (const mxfp4::Error& error) {
    if (error.kind() != mxfp4::ErrorKind::kInput) std::abort();
  }
  return 0;
}
