// libFuzzer target: any bytes as a zstd file with a seek table. Accepted frames must tile the file
// before the table; small ones are decoded, which must end in the promised bytes or in
// Error::input.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "formats/blob/seekable_zstd.hpp"
#include "tests/fuzz/fuzz_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kDecodeLimit = 1 << 20;
  const mxfp4::ConstBytes file(reinterpret_cast<const std::byte*>(data), size);
  mxfp4::fuzz::only_input_errors([&] {
    int64_t encoded = 0;
    int64_t decoded = 0;
    std::vector<std::byte> out;
    for (const auto& [frame, encoded_offset, decoded_offset] :
         mxfp4::read_seek_table(file, std::ssize(file))) {
      if (encoded_offset != encoded || decoded_offset != decoded) std::abort();
      encoded += frame.encoded;
      decoded += frame.decoded;
      if (encoded > static_cast<int64_t>(size)) std::abort();
      if (decoded > kDecodeLimit) continue;
      out.resize(static_cast<size_t>(frame.decoded));
      mxfp4::decode_frame(
          file.subspan(static_cast<size_t>(encoded_offset), static_cast<size_t>(frame.encoded)),
          frame, out);
    }
  });
  return 0;
}
