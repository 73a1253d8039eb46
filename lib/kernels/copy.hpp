// Copies of rows. Large outputs are not read again soon: whole cache lines of them can be written
// past the caches, which saves reading the old content first.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mxfp4::kernels {

// Like memcpy. With `streaming`, whole lines of `out` go past the caches; call finish_streaming()
// before another thread may look.
void copy_bytes(const std::byte* in, int64_t bytes, bool streaming, std::byte* out) noexcept;

void finish_streaming() noexcept;

}  // namespace mxfp4::kernels
