// libFuzzer target: any text as the members of a blob's manifest; the checksum that ends a manifest
// is added, or nothing would get past it. What is accepted is written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "formats/blob/manifest.hpp"
#include "tests/fuzz/fuzz_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(mxfp4::fuzz::text_of(data, size));
  for (const std::string& manifest : {text, mxfp4::fuzz::sealed(text)}) {
    mxfp4::fuzz::only_input_errors([&] {
      const std::string written = mxfp4::write_manifest(mxfp4::parse_manifest(manifest));
      if (mxfp4::write_manifest(mxfp4::parse_manifest(written)) != written) std::abort();
    });
  }
  return 0;
}
