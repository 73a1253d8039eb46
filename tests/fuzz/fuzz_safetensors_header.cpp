// libFuzzer target: any bytes as a safetensors file. Accepted headers must tile the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "formats/safetensors/safetensors_header.hpp"
#include "tests/fuzz/fuzz_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const mxfp4::ConstBytes bytes(reinterpret_cast<const std::byte*>(data), size);
  mxfp4::fuzz::only_input_errors([&] {
    const auto header = mxfp4::parse_safetensors_header(bytes, static_cast<int64_t>(size));
    int64_t position = header.data_start;
    for (const auto& tensor : header.tensors) {
      if (header.data_start + tensor.begin != position) std::abort();
      position = header.data_start + tensor.end;
    }
    if (position != static_cast<int64_t>(size)) std::abort();
  });
  return 0;
}
