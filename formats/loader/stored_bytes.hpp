// Reads parts of one expert's loaded matrix straight out of a checkpoint's files, slices and
// padding put in place. Rows that are as long as they are stored are read where they are wanted;
// others pass through a buffer that stays in the caches.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/checkpoint/positioned_source.hpp"
#include "lib/exec/buffer.hpp"
#include "lib/load/slice.hpp"

namespace mxfp4 {

// One thread's; reused for one read after another.
class StoredBytes {
 public:
  // Writes bytes [begin, end) of the loaded matrix to `to`. `stored`: where the checkpoint has the
  // expert's matrix, in order. Needs assembly.from == assembly.to. Throws Error::input naming
  // the file.
  void read(const PositionedSource& source, const Assembly& assembly,
            const std::vector<Extent>& stored, int64_t begin, int64_t end, std::byte* to);
  // Says that read() will be asked for the whole loaded matrix.
  static void expect(const PositionedSource& source, const Assembly& assembly,
                     const std::vector<Extent>& stored);
  // Fills `out` with bytes of the stored matrix from `offset` on. Throws Error::input naming
  // the file.
  static void read_stored(const PositionedSource& source, const std::vector<Extent>& stored,
                          int64_t offset, MutableBytes out);

 private:
  // Rows [first, last) of `rect`, of which `to` gets what lies in [begin, end) of the
  // loaded matrix.
  void read_rows(const Assembly& assembly, const CopyRect& rect, int64_t first, int64_t last,
                 int64_t begin, int64_t end, std::byte* to);

  const PositionedSource* source_ = nullptr;
  const std::vector<Extent>* stored_ = nullptr;
  Buffer rows_;  // as they are stored, where the loaded ones are longer or shorter
};

}  // namespace mxfp4
