// Makes the bytes of planned pieces from a source: read, assemble, run the layout's program. Shared
// by convert, which writes them, and verify --against, which compares them.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "formats/source/source.hpp"
#include "lib/exec/buffer.hpp"
#include "lib/exec/pool.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {

// Buffers of one job in flight; reused by the next job of the same token.
struct JobBuffers {
  std::vector<Buffer> stored;      // by slot of the job: bytes read from the source
  std::vector<Buffer> decoded;     // by piece of the job: its bytes as they will be written
  std::vector<ConstBytes> pieces;  // views of `decoded`, or of the source where nothing changes
  std::vector<MutableBytes> read;  // by slot: what the read stage filled; empty when mapped
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

  // Lets go of the source's bytes, once a job's pieces are no longer needed. Thread-safe.
  void release(const Job& job) const;

  // The layouts' warnings about the data ("input scales differ..."), each text once, sorted.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  // Buffers of a worker while it is at work; there are fewer workers than jobs in flight.
  struct WorkBuffers {
    std::vector<Buffer> joined;  // by slot of the job: one expert's parts put together
    std::vector<Buffer> loaded;  // by slot: one granule in the loaded layout
    Buffer scratch;
  };
  struct ExpertRange {
    int64_t first = 0;  // local
    int64_t count = 0;
  };
  static ExpertRange experts_of(const Piece& piece, const Output& output);

  void make_piece(const Piece& piece, size_t index, JobBuffers& buffers, WorkBuffers& work);
  // The piece as it lies in the source, when it is written as it is; else empty.
  ConstBytes unchanged(const Piece& piece, const JobBuffers& buffers);
  // Where the source has these experts, one after another.
  [[nodiscard]] std::vector<Extent> extents_of(const PlannedFile& file, Slot slot,
                                               ExpertRange range) const;
  // Empty unless the source serves the extent from a map.
  [[nodiscard]] ConstBytes mapped(const Extent& extent) const;
  [[nodiscard]] bool all_mapped(const std::vector<Extent>& extents) const;
  // These experts where they lie one behind another in a mapped tensor; else empty.
  [[nodiscard]] ConstBytes in_one_view(const PlannedFile& file, Slot slot, ExpertRange range) const;
  // Runs the layout's own check of one granule's loaded bytes, and keeps its warning.
  void check(const PlannedFile& file, Slot slot, ConstBytes granule);
  // One granule of `slot` in the loaded layout; `slot_index` picks the buffers.
  ConstBytes load(const Piece& piece, int64_t granule, Slot slot, size_t slot_index,
                  const JobBuffers& buffers, WorkBuffers& work);
  ConstBytes stored_expert(const Piece& piece, int64_t local, Slot slot, size_t slot_index,
                           const JobBuffers& buffers, WorkBuffers& work);

  Source& source_;
  const ModelLayers& model_;
  const Plan& plan_;
  const Layout* layout_;
  Target target_;
  mutable std::mutex mutex_;
  std::set<std::string> warnings_;
  Pool<WorkBuffers> work_buffers_{[] { return std::make_unique<WorkBuffers>(); }};
};

}  // namespace mxfp4
