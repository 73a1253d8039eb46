#include "lib/kernels/copy.hpp"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/kernels/copy.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mxfp4::kernels {
namespace HWY_NAMESPACE {
namespace {

// `out` is aligned to a line and `bytes` is whole lines.
void stream_lines(const uint8_t* in, size_t bytes, uint8_t* out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<uint8_t, 64> d;
  constexpr size_t kLine = 64;
  for (size_t line = 0; line < bytes; line += kLine) {
    for (size_t i = line; i < line + kLine; i += hn::Lanes(d)) {
      hn::Stream(hn::LoadU(d, in + i), d, out + i);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mxfp4::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mxfp4::kernels {
namespace {
HWY_EXPORT(stream_lines);
}  // namespace

void copy_bytes(const std::byte* in, int64_t bytes, bool streaming, std::byte* out) noexcept {
  constexpr size_t kLine = 64;
  auto left = static_cast<size_t>(bytes);
  if (streaming) {
    const size_t misaligned = reinterpret_cast<uintptr_t>(out) % kLine;
    const size_t head = misaligned == 0 ? 0 : kLine - misaligned;
    if (left >= head + kLine) {
      std::memcpy(out, in, head);
      const size_t lines = (left - head) / kLine * kLine;
      HWY_DYNAMIC_DISPATCH(stream_lines)
      (reinterpret_cast<const uint8_t*>(in + head), lines, reinterpret_cast<uint8_t*>(out + head));
      in += head + lines;
      out += head + lines;
      left -= head + lines;
    }
  }
  if (left > 0) std::memcpy(out, in, left);
}

// x86-64's stores past the caches are not in the order of its other stores: a fence. On Arm
// Highway's are ordinary stores, for which the release that hands the bytes on suffices, so this
// does nothing there.
void finish_streaming() noexcept { hwy::FlushStream(); }

}  // namespace mxfp4::kernels
#endif  // HWY_ONCE
