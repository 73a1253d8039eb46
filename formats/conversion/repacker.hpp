// Makes the bytes of planned pieces from a source: reads, assembles, runs the layout's program.
// convert writes these bytes, verify --against compares them, a loader brings them to a GPU.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "formats/source/source.hpp"
#include "lib/exec/buffer.hpp"
#include "lib/exec/pool.hpp"
#include "lib/layouts/output.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {

// Buffers of one job in flight; reused by a later job.
struct JobBuffers {
  std::vector<Buffer> stored;      // by slot of the job: bytes read from the source
  std::vector<Buffer> decoded;     // by piece of the job: its bytes as they will be written
  std::vector<ConstBytes> pieces;  // by piece: its bytes, in `decoded`, or unchanged in `stored`
  std::vector<MutableBytes> read;  // by slot: what was read
};

class Repacker {
 public:
  // The arguments must outlive the repacker. `layout` is null for a plan that stops at the loaded
  // layout.
  Repacker(Source& source, const ModelLayers& model, const Plan& plan, const Layout* layout,
           const LayoutParameters& parameters);

  // Tells the source what work() on these jobs, in this order, will ask of it.
  void expect(std::span<const Job> jobs);
  // Reads the job's bytes and fills buffers.pieces, one span a piece. Thread-safe for different buffers.
  void work(const Job& job, JobBuffers& buffers);

  // The layouts' warnings about the data ("input scales differ..."), each text once, sorted.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  // Buffers of a worker. JobBuffers do not hold them because there are more jobs in flight than
  // workers.
  struct WorkBuffers {
    std::vector<Buffer> loaded;  // by slot: one granule in the loaded layout
    Buffer scratch;
  };
  struct ExpertRange {
    int64_t first = 0;  // local
    int64_t count = 0;
  };
  static ExpertRange experts_of(const Piece& piece, const Output& output);

  void read(const Job& job, JobBuffers& buffers);
  void make_piece(const Piece& piece, size_t index, JobBuffers& buffers, WorkBuffers& work);
  // The piece's bytes as they were read, if they are written unchanged; else empty.
  ConstBytes unchanged(const Piece& piece, const JobBuffers& buffers);
  // Where the source holds these experts, in their order.
  [[nodiscard]] std::vector<Extent> extents_of(const PlannedFile& file, Slot slot,
                                               ExpertRange range) const;
  // Runs the layout's check of one granule's loaded bytes, and keeps its warning.
  void check(const PlannedFile& file, Slot slot, ConstBytes granule);
  // One granule of `slot` in the loaded layout; `slot_index` picks the buffers.
  ConstBytes load(const Piece& piece, int64_t granule, Slot slot, size_t slot_index,
                  const JobBuffers& buffers, WorkBuffers& work);
  ConstBytes stored_expert(const Piece& piece, int64_t local, Slot slot, size_t slot_index,
                           const JobBuffers& buffers) const;

  Source& source_;
  const ModelLayers& model_;
  const Plan& plan_;
  const Layout* layout_;
  LayoutParameters parameters_;
  mutable std::mutex mutex_;
  std::set<std::string> warnings_;
  Pool<WorkBuffers> work_buffers_{[] { return std::make_unique<WorkBuffers>(); }};
};

}  // namespace mxfp4
