// libFuzzer target: any bytes as a layer file, as they are, and as the content of zstd frames under
// a seek table that lies about them as the first bytes say. An accepted file's tensors are read:
// that ends in the promised bytes or in Error::input.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/seekable_zstd.hpp"
#include "tests/fuzz/fuzz_input.hpp"

namespace {

using Bytes = std::vector<std::byte>;

void read_all(std::string_view file) {
  constexpr int64_t kReadLimit = 1 << 20;
  mxfp4::fuzz::only_input_errors([&] {
    const mxfp4::fuzz::MemoryFile memory(file);
    const mxfp4::LayerReader reader(memory.path());
    Bytes out;
    for (const mxfp4::SafetensorsTensor& tensor : reader.header().tensors) {
      const int64_t bytes = tensor.end - tensor.begin;
      if (bytes != tensor.spec.bytes()) std::abort();
      if (bytes > kReadLimit) continue;
      out.resize(static_cast<size_t>(bytes));
      reader.read(tensor.begin, out);
      // From the middle of a frame to the middle of another.
      if (bytes > 2) reader.read(tensor.begin + 1, mxfp4::MutableBytes(out).first(out.size() - 2));
    }
  });
}

// Two bytes describe a frame: its size, and in bits what the table says of it wrongly.
enum Lie : uint8_t { kDecoded = 1, kEncoded = 2, kChecksum = 4, kDamage = 8, kLastFrame = 128 };

mxfp4::FrameInfo tell(mxfp4::FrameInfo frame, uint8_t lies) {
  const int amount = lies >> 4 & 7;
  if ((lies & kDecoded) != 0) frame.decoded += (int64_t{1} << (4 * amount)) - 2;
  if ((lies & kEncoded) != 0) frame.encoded += amount - 3;
  if ((lies & kChecksum) != 0) frame.checksum ^= 1U;
  return frame;
}

Bytes framed(mxfp4::ConstBytes input) {
  constexpr size_t kMaxFrames = 16;
  mxfp4::FrameEncoder encoder(2);  // level 1 would leave zstd out
  std::vector<std::pair<size_t, uint8_t>> frames;
  while (input.size() >= 2 && frames.size() < kMaxFrames) {
    const auto size = std::to_integer<size_t>(input[0]);
    const auto lies = std::to_integer<uint8_t>(input[1]);
    input = input.subspan(2);
    // A long frame for the header, short ones for the data.
    frames.emplace_back(frames.empty() ? size * 16 + 1 : size + 1, lies);
    if ((lies & kLastFrame) != 0) break;
  }
  Bytes file;
  std::vector<mxfp4::FrameInfo> table;
  for (const auto& [size, lies] : frames) {
    const mxfp4::ConstBytes content = input.first(std::min(size, input.size()));
    if (content.empty()) break;
    input = input.subspan(content.size());
    table.push_back(tell(encoder.encode(content, file), lies));
    if ((lies & kDamage) != 0) file[file.size() - 1 - (lies >> 4 & 7)] ^= std::byte{0x10};
  }
  const Bytes end = mxfp4::make_seek_table(table);
  file.insert(file.end(), end.begin(), end.end());
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read_all(mxfp4::fuzz::text_of(data, size));
  const Bytes file = framed({reinterpret_cast<const std::byte*>(data), size});
  read_all({reinterpret_cast<const char*>(file.data()), file.size()});
  return 0;
}
