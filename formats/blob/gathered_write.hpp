// Writes many parts to one place of a file, one behind another. Small parts are put together first.
// Bytes are summed just before they are written, while they are in the cache.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/checksum/checksum.hpp"
#include "formats/os/atomic_file.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

class GatheredWrite {
 public:
  // Half of a small second-level cache.
  static constexpr size_t kBatchBytes = size_t{256} << 10;

  // Added bytes go to `file` from `offset` on, and to `sum`. `memory` holds small parts, and grows
  // to kBatchBytes for them.
  GatheredWrite(AtomicFile& file, int64_t offset, ChecksumPart& sum, std::vector<std::byte>& memory)
      : file_(file), offset_(offset), sum_(sum), memory_(memory) {}

  // Does not copy large parts: `bytes` must stay valid until finish(). Throws Error::output.
  void add(ConstBytes bytes);
  // Writes what is left. Throws Error::output.
  void finish();

 private:
  void gather(ConstBytes part);

  AtomicFile& file_;
  int64_t offset_;
  ChecksumPart& sum_;
  std::vector<std::byte>& memory_;
  size_t gathered_ = 0;  // bytes of memory_ in use
  std::vector<ConstBytes> batch_;
  size_t batch_bytes_ = 0;
};

}  // namespace mxfp4
