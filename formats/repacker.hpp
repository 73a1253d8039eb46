// Makes the bytes of planned pieces from a source: read, assemble, run the layout's program. Shared
// by convert, which writes them, and verify --against, which compares them.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "formats/source.hpp"
#include "lib/exec/buffer.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {

// Buffers of one job in flight; reused by the next job of the same token.
struct JobBuffers {
  std::vector<Buffer> stored;  // by slot of the job: bytes read from the source
  std::vector<Buffer> joined;  // by slot: one expert's parts put together
  std::vector<Buffer> loaded;  // by slot: one granule in the loaded layout
  Buffer scratch;
  std::vector<Buffer> decoded;       // by piece of the job: its bytes as they will be written
  std::vector<MutableBytes> pieces;  // views of `decoded`
  std::vector<MutableBytes> read;    // by slot: what the read stage filled; empty when mapped
};

class Repacker {
 public:
  // All arguments outlive the repacker. `layout` is null for a plan that stops at the loaded
  // layout.
  Repacker(Source& source, const ModelLayers& model, const Plan& plan, const Layout* layout,
           const Target& target);

  // Read stage: fetches what is not mapped. One call at a time.
  void read(const Job& job, JobBuffers& buffers);
  // Work stage: fills buffers.pieces, one span a piece. Thread-safe for different buffers.
  void work(const Job& job, JobBuffers& buffers);

  // What layouts had to say about the data ("input scales differ..."), each text once, sorted.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  void make_piece(const Piece& piece, size_t index, JobBuffers& buffers);
  // One granule of `slot` in the loaded layout; `slot_index` picks the buffers.
  ConstBytes load(const Piece& piece, int64_t granule, Slot slot, size_t slot_index,
                  JobBuffers& buffers);
  ConstBytes stored_expert(const Piece& piece, int64_t local, Slot slot, size_t slot_index,
                           JobBuffers& buffers);

  Source& source_;
  const ModelLayers& model_;
  const Plan& plan_;
  const Layout* layout_;
  Target target_;
  mutable std::mutex mutex_;
  std::set<std::string> warnings_;
};

}  // namespace mxfp4
