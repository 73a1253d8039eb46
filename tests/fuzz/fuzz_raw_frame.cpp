// libFuzzer target: any bytes as a zstd frame of up to 64 KiB, behind two bytes that say how much
// its seek table promises. Our reader of raw frames ends in those bytes or in
// Error::input; what it accepts, zstd decodes to the same.
#include <zstd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "formats/blob/raw_frames.hpp"
#include "formats/blob/seekable_zstd.hpp"
#include "tests/fuzz/fuzz_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 6) return 0;
  const size_t promised = data[0] | static_cast<size_t>(data[1]) << 8;
  const mxfp4::ConstBytes frame(reinterpret_cast<const std::byte*>(data) + 2, size - 2);
  mxfp4::FrameInfo info{static_cast<int64_t>(frame.size()), static_cast<int64_t>(promised), 0};
  std::memcpy(&info.checksum, frame.data() + frame.size() - 4, 4);
  std::vector<std::byte> ours(promised);
  mxfp4::fuzz::only_input_errors([&] {
    if (!mxfp4::copy_raw_frame(frame, info, ours, mxfp4::FrameCheck::kChecksums, nullptr)) return;
    std::vector<std::byte> theirs(promised);
    const size_t decoded =
        ZSTD_decompress(theirs.data(), theirs.size(), frame.data(), frame.size());
    if (decoded != promised || theirs != ours) std::abort();
  });
  mxfp4::fuzz::only_input_errors([&] { mxfp4::decode_frame(frame, info, ours); });
  return 0;
}
