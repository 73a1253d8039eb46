// Makes the layers of a blob from a checkpoint, on the way to whoever loads them: the bytes that
// `convert` would write, from the same plan, by the same passes. Nothing is written to disk, and no
// blob is needed.
//
// A piece is some granules of a tensor, experts mostly. A thread makes one granule at a time: it
// reads an expert's matrix and runs the layout's schedule. A layout that changes nothing is only
// read. What is made from several slots, or from all experts at once, goes through Repacker,
// as in `convert`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "formats/checkpoint/positioned_source.hpp"
#include "formats/conversion/repacker.hpp"
#include "formats/loader/load_source.hpp"
#include "formats/loader/planned_load.hpp"

namespace mxfp4 {

class CheckpointLoader final : public LoadSource {
 public:
  explicit CheckpointLoader(PlannedLoad load);
  ~CheckpointLoader() override;

  [[nodiscard]] int64_t best_piece(size_t layer, size_t tensor) const override;
  [[nodiscard]] bool cuts_anywhere(size_t layer, size_t tensor) const override;
  [[nodiscard]] const GatherPlan* gpu_pass(size_t layer, size_t tensor) const override {
    return makings_[layer][tensor].on_gpu.get();
  }
  [[nodiscard]] HeldPass held_pass(size_t layer, size_t tensor) const override;
  [[nodiscard]] std::vector<LoadPiece> pieces(size_t layer, size_t tensor, int64_t begin,
                                              int64_t bytes, int64_t limit) const override;
  void read_piece(size_t layer, const LoadPiece& piece, MutableBytes out, LoadBuffers& buffers,
                  FrameCheck check, ChecksumPart* sum) const override;
  [[nodiscard]] std::string place(size_t layer, size_t tensor) const override;
  void check_unchanged() const override;
  [[noreturn]] void check_file(size_t layer, const LoadOptions& options) const override;

 protected:
  [[nodiscard]] bool reads_ahead() const override { return source_->reads_ahead(); }
  void expect_part(size_t layer, size_t tensor, int64_t begin, int64_t bytes) const override;

 private:
  // How granules of a tensor are made.
  enum class Way : uint8_t {
    kRead,   // they are the loaded bytes
    kRun,    // by the schedule of a program, from one matrix
    kWhole,  // by Repacker
  };
  struct Making {
    Way way = Way::kWhole;
    Program program;
    // The program's input: stored rows, which it pads itself, or (false) the loaded matrix. kRead:
    // with stored rows the GPU's only.
    bool from_stored = false;
    std::shared_ptr<const GatherPlan> on_gpu{};  // the program; null where only CPUs run it
  };

  // Whether the layout checks the bytes of a slot.
  [[nodiscard]] bool checks(Slot slot) const;
  [[nodiscard]] Way way_of(const PlannedFile& file, const PlannedTensor& tensor) const;
  [[nodiscard]] Making making_of(const PlannedFile& file, const PlannedTensor& tensor);
  [[nodiscard]] const PlannedTensor& planned(size_t layer, size_t tensor) const {
    return made_.plan.files[layer].tensors[tensor];
  }
  // Where the checkpoint has the matrix of an expert of this rank.
  [[nodiscard]] const std::vector<Extent>& stored_of(const PlannedFile& file, Slot slot,
                                                     int64_t expert) const;
  void read_input(size_t layer, size_t tensor, int64_t granule, bool from_stored, int64_t begin,
                  int64_t end, std::byte* to, MakeBuffers& buffers) const;
  void read_bytes(size_t layer, const LoadPiece& piece, MutableBytes out,
                  MakeBuffers& buffers) const;
  void make_granules(size_t layer, const LoadPiece& piece, MutableBytes out,
                     MakeBuffers& buffers) const;
  void make_granule(size_t layer, size_t tensor, int64_t granule, MutableBytes out,
                    MakeBuffers& buffers) const;
  // Runs the schedule of a granule.
  void run_program(size_t layer, size_t tensor, int64_t granule, MutableBytes out,
                   MakeBuffers& buffers) const;
  void repack_granule(const Piece& piece, MutableBytes out, MakeBuffers& buffers) const;

  std::filesystem::path path_;
  std::shared_ptr<PositionedSource> source_;
  PlannedCheckpoint made_;                    // a file of its plan for each layer
  std::vector<std::vector<Making>> makings_;  // by layer and tensor
  // What layers of equal sizes share: by the output, and the rows and bytes of a row of a stored
  // matrix.
  using SharedBy = std::tuple<const Output*, int64_t, int64_t>;
  std::map<SharedBy, Making> shared_;
  mutable std::mutex held_mutex_;
  mutable std::map<SharedBy, std::shared_ptr<const GatherPlan>> held_;  // null: only CPUs
  // Thread-safe, since the source is.
  mutable std::unique_ptr<Repacker> repacker_;
  uint64_t serial_;  // of all that this process opens: by it buffers know whose bytes they hold
};

}  // namespace mxfp4
