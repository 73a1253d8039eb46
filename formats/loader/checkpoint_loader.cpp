#include "formats/loader/checkpoint_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <tuple>
#include <utility>

#include "formats/blob/blob_writer.hpp"
#include "formats/blob/planned.hpp"
#include "formats/loader/stored_bytes.hpp"
#include "formats/os/input_fault.hpp"
#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/output.hpp"
#include "lib/layouts/run_output.hpp"
#include "lib/steps/run_schedule.hpp"

namespace mxfp4 {

// What one thread makes granules with.
struct MakeBuffers {
  StoredBytes stored;
  Buffer input;  // one expert's stored or loaded matrix
  Buffer scratch;
  JobBuffers job;
  Buffer granule;                                              // of which a part was wanted
  std::tuple<uint64_t, size_t, size_t, int64_t> granule_of{};  // serial, layer, tensor, granule
};

namespace {

// Relaxed: only that no two numbers are equal matters.
uint64_t next_serial() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

CheckpointLoader::CheckpointLoader(PlannedLoad load)
    : path_(load.made.input.path),
      source_(std::move(load.source)),
      made_(std::move(load.made)),
      serial_(next_serial()) {
  manifest_ = std::move(load.manifest);
  repacker_ = std::make_unique<Repacker>(*source_, made_.input.model, made_.plan, made_.layout,
                                         layout_parameters(manifest_.target));
  for (size_t i = 0; i < manifest_.layers.size(); ++i) {
    const PlannedFile& file = made_.plan.files[i];
    std::vector<Making>& makings = makings_.emplace_back();
    for (const PlannedTensor& tensor : file.tensors) makings.push_back(making_of(file, tensor));
    manifest_.layers[i].size =
        std::ssize(layer_header(manifest_, manifest_.layers[i])) + file.data_bytes;
  }
  manifest_text_ = write_manifest(manifest_);
}

CheckpointLoader::~CheckpointLoader() = default;

bool CheckpointLoader::checks(Slot slot) const {
  if (slot == Slot::kW13Weight || slot == Slot::kW2Weight) return false;
  return made_.layout != nullptr && checks_data(*made_.layout);
}

CheckpointLoader::Way CheckpointLoader::way_of(const PlannedFile& file,
                                               const PlannedTensor& tensor) const {
  const Output& output = (*file.outputs)[tensor.output];
  if (output.combination || output.experts_per_granule != 1) return Way::kWhole;
  const Assembly& assembly = *file.assemblies[static_cast<size_t>(output.slot)];
  if (assembly.from != assembly.to || assembly.loaded.row_bytes == 0) return Way::kWhole;
  if (!assembly.tails.empty()) return Way::kWhole;  // a program pads with one byte
  return output.program.is_identity() && !checks(output.slot) ? Way::kRead : Way::kRun;
}

// Where loading only puts filling behind stored rows and below them, a step of the program does so
// as well, and joins with the moves of rows that follow: each row is copied once less. What is read
// as it is wanted but for that, CPUs fill and a GPU makes.
CheckpointLoader::Making CheckpointLoader::making_of(const PlannedFile& file,
                                                     const PlannedTensor& tensor) {
  const Output& output = (*file.outputs)[tensor.output];
  Making making = {way_of(file, tensor), output.program};
  const std::optional<Assembly>& assembly = file.assemblies[static_cast<size_t>(output.slot)];
  if (making.way == Way::kWhole || checks(output.slot)) return making;
  const ExpertMatrix& stored = assembly->stored;
  const ExpertMatrix& loaded = assembly->loaded;
  if (making.way == Way::kRead && (!assembly->pads_only() || stored.bytes() == loaded.bytes())) {
    return making;
  }
  const std::tuple key(&output, stored.rows, stored.row_bytes);
  const auto at = shared_.find(key);
  if (at != shared_.end()) return at->second;
  if (assembly->pads_only()) {
    making.from_stored = true;
    making.program = Program(stored.bytes());
    making.program.then(
        PadMatrix{stored.rows, stored.row_bytes, loaded.rows, loaded.row_bytes, assembly->fill});
    for (const Step& step : output.program.steps()) making.program.then(step);
  }
  if (auto plan = gather_plan(making.program)) {
    making.on_gpu = std::make_shared<const GatherPlan>(std::move(*plan));
  }
  return shared_.emplace(key, std::move(making)).first->second;
}

std::string CheckpointLoader::place(size_t layer, size_t tensor) const {
  return fmt::format("{}: {}", path_.string(), planned(layer, tensor).name);
}

void CheckpointLoader::check_unchanged() const { source_->check_unchanged(); }

void CheckpointLoader::check_file(size_t layer, const LoadOptions& /*options*/) const {
  throw Error::usage(fmt::format("{}: {} is made, and has no file to check", path_.string(),
                                 manifest_.layers[layer].prefix));
}

bool CheckpointLoader::cuts_anywhere(size_t layer, size_t tensor) const {
  return makings_[layer][tensor].way == Way::kRead;
}

int64_t CheckpointLoader::best_piece(size_t layer, size_t tensor) const {
  if (cuts_anywhere(layer, tensor)) return kPlainPiece;
  return std::max(kPlainPiece, planned(layer, tensor).granule_bytes);
}

std::vector<LoadPiece> CheckpointLoader::pieces(size_t layer, size_t tensor, int64_t begin,
                                                int64_t bytes, int64_t limit) const {
  const int64_t granule = planned(layer, tensor).granule_bytes;
  return cut_granules(tensor, begin, bytes, limit, cuts_anywhere(layer, tensor) ? 1 : granule);
}

void CheckpointLoader::expect_part(size_t layer, size_t tensor, int64_t begin,
                                   int64_t bytes) const {
  const PlannedFile& file = made_.plan.files[layer];
  const PlannedTensor& made = file.tensors[tensor];
  const Output& output = (*file.outputs)[made.output];
  const int64_t experts = output.experts_per_granule;
  const int64_t first = begin / made.granule_bytes * experts;
  const int64_t end = ceil_div(begin + bytes, made.granule_bytes) * experts;
  for (int64_t expert = first; expert < end; ++expert) {
    for (const Slot slot : slots_read(output)) {
      if (made_.input.model.layers[file.layer].slot(slot).experts.empty()) continue;
      const std::vector<Extent>& stored = stored_of(file, slot, expert);
      if (makings_[layer][tensor].way != Way::kWhole) {
        StoredBytes::expect(*source_, *file.assemblies[static_cast<size_t>(slot)], stored);
      } else {
        for (const Extent& extent : stored) source_->expect(extent);
      }
    }
  }
}

void CheckpointLoader::read_piece(size_t layer, const LoadPiece& piece, MutableBytes out,
                                  LoadBuffers& buffers, FrameCheck /*check*/,
                                  ChecksumPart* sum) const {
  if (buffers.make == nullptr) buffers.make = std::make_shared<MakeBuffers>();
  if (piece.raw || cuts_anywhere(layer, piece.tensor)) {
    read_bytes(layer, piece, out, *buffers.make);
  } else {
    make_granules(layer, piece, out, *buffers.make);
  }
  if (sum != nullptr) sum->update(out);
}

const std::vector<Extent>& CheckpointLoader::stored_of(const PlannedFile& file, Slot slot,
                                                       int64_t expert) const {
  const ExpertLayer& layer = made_.input.model.layers[file.layer];
  const auto& of_rank = made_.plan.ranks[file.rank].experts_of(layer.dims.num_experts);
  return layer.slot(slot).experts[static_cast<size_t>(of_rank[static_cast<size_t>(expert)])];
}

// Bytes [begin, end) of a granule's stored or loaded matrix.
void CheckpointLoader::read_input(size_t layer, size_t tensor, int64_t granule, bool from_stored,
                                  int64_t begin, int64_t end, std::byte* to,
                                  MakeBuffers& buffers) const {
  const PlannedFile& file = made_.plan.files[layer];
  const Slot slot = (*file.outputs)[file.tensors[tensor].output].slot;
  if (from_stored) {
    StoredBytes::read_stored(*source_, stored_of(file, slot, granule), begin,
                             MutableBytes(to, static_cast<size_t>(end - begin)));
  } else {
    buffers.stored.read(*source_, *file.assemblies[static_cast<size_t>(slot)],
                        stored_of(file, slot, granule), begin, end, to);
  }
}

// Granules as they are loaded, or raw.
void CheckpointLoader::read_bytes(size_t layer, const LoadPiece& piece, MutableBytes out,
                                  MakeBuffers& buffers) const {
  const Making& making = makings_[layer][piece.tensor];
  const int64_t size =
      piece.raw ? making.program.in_bytes() : planned(layer, piece.tensor).granule_bytes;
  const int64_t end = piece.begin + piece.bytes;
  for (int64_t at = piece.begin; at < end;) {
    const int64_t granule = at / size;
    const int64_t first = granule * size;
    const int64_t until = std::min(end, first + size);
    read_input(layer, piece.tensor, granule, piece.raw && making.from_stored, at - first,
               until - first, out.data() + (at - piece.begin), buffers);
    at = until;
  }
}

void CheckpointLoader::make_granules(size_t layer, const LoadPiece& piece, MutableBytes out,
                                     MakeBuffers& buffers) const {
  const int64_t size = planned(layer, piece.tensor).granule_bytes;
  const int64_t granule = piece.begin / size;
  const int64_t skip = piece.begin % size;
  if (skip == 0 && piece.bytes % size == 0) {
    for (int64_t i = 0; i < piece.bytes / size; ++i) {
      make_granule(layer, piece.tensor, granule + i,
                   out.subspan(static_cast<size_t>(i * size), static_cast<size_t>(size)), buffers);
    }
    return;
  }
  // A part of one: mostly the next part is asked for next.
  const MutableBytes whole = buffers.granule.get(size);
  const auto wanted = std::tuple(serial_, layer, piece.tensor, granule);
  if (buffers.granule_of != wanted) {
    buffers.granule_of = {};
    make_granule(layer, piece.tensor, granule, whole, buffers);
    buffers.granule_of = wanted;
  }
  std::memcpy(out.data(), whole.data() + skip, out.size());
}

void CheckpointLoader::make_granule(size_t layer, size_t tensor, int64_t granule, MutableBytes out,
                                    MakeBuffers& buffers) const {
  const Making& making = makings_[layer][tensor];
  if (making.way == Way::kRun) {
    run_program(layer, tensor, granule, out, buffers);
  } else {
    repack_granule({layer, tensor, granule, 1}, out, buffers);
  }
}

void CheckpointLoader::run_program(size_t layer, size_t tensor, int64_t granule, MutableBytes out,
                                   MakeBuffers& buffers) const {
  const PlannedFile& file = made_.plan.files[layer];
  const Output& output = (*file.outputs)[file.tensors[tensor].output];
  const Making& making = makings_[layer][tensor];
  const Schedule& schedule = making.program.schedule(Direction::kForward);
  const int64_t size = making.program.in_bytes();
  const MutableBytes scratch = buffers.scratch.get(schedule.scratch_bytes());
  const MutableBytes in = buffers.input.get(size);
  read_input(layer, tensor, granule, making.from_stored, 0, size, in.data(), buffers);
  run_schedule(schedule, in, out, scratch);
  if (checks(output.slot)) {
    (void)check_granule(*made_.layout, {file.loaded, layout_parameters(manifest_.target)},
                        output.slot, in);
  }
}

void CheckpointLoader::repack_granule(const Piece& piece, MutableBytes out,
                                      MakeBuffers& buffers) const {
  const Job job{{piece}, 0};
  repacker_->work(job, buffers.job);
  const ConstBytes made = buffers.job.pieces.front();
  std::memcpy(out.data(), made.data(), made.size());
}

}  // namespace mxfp4
