#include "formats/conversion/repacker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/remote/files_at.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/output.hpp"
#include "lib/layouts/run_output.hpp"

namespace mxfp4 {

Repacker::ExpertRange Repacker::experts_of(const Piece& piece, const Output& output) {
  return {piece.first_granule * output.experts_per_granule,
          piece.granules * output.experts_per_granule};
}

Repacker::Repacker(Source& source, const ModelLayers& model, const Plan& plan, const Layout* layout,
                   const LayoutParameters& parameters)
    : source_(source), model_(model), plan_(plan), layout_(layout), parameters_(parameters) {}

void Repacker::expect(std::span<const Job> jobs) {
  if (!source_.reads_ahead()) return;
  expect_nothing();
  for (const Job& job : jobs) {
    const Piece& piece = job.pieces.front();  // all take the same experts, as in read()
    const PlannedFile& file = plan_.files[piece.file];
    const Output& output = (*file.outputs)[file.tensors[piece.tensor].output];
    for (const Slot slot : slots_read(output)) {
      for (const Extent& range : extents_of(file, slot, experts_of(piece, output))) {
        source_.expect(range);
      }
    }
  }
}

void Repacker::read(const Job& job, JobBuffers& buffers) {
  // All pieces of a job take the same experts of the same layer, so the first stands for all.
  const Piece& piece = job.pieces.front();
  const PlannedFile& file = plan_.files[piece.file];
  const Output& output = (*file.outputs)[file.tensors[piece.tensor].output];
  const auto slots = slots_read(output);
  const ExpertRange range = experts_of(piece, output);
  buffers.stored.resize(std::max(buffers.stored.size(), slots.size()));
  buffers.read.assign(slots.size(), {});
  for (size_t s = 0; s < slots.size(); ++s) {
    const int64_t expert_bytes = file.assemblies[static_cast<size_t>(slots[s])]->stored.bytes();
    const std::vector<Extent> extents = extents_of(file, slots[s], range);
    if (extents.empty()) continue;  // a parameter that the reference never fills
    const MutableBytes target = buffers.stored[s].get(range.count * expert_bytes);
    size_t at = 0;
    for (const Extent& extent : extents) {
      const auto size = static_cast<size_t>(extent.bytes);
      source_.read(extent.tensor, extent.offset, target.subspan(at, size));
      at += size;
    }
    buffers.read[s] = target;
  }
}

void Repacker::work(const Job& job, JobBuffers& buffers) {
  read(job, buffers);
  buffers.decoded.resize(std::max(buffers.decoded.size(), job.pieces.size()));
  buffers.pieces.assign(job.pieces.size(), {});
  work_buffers_.use([&](WorkBuffers& work) {
    work.loaded.resize(std::max(work.loaded.size(), buffers.read.size()));
    for (size_t i = 0; i < job.pieces.size(); ++i) {
      const PlannedFile& file = plan_.files[job.pieces[i].file];
      in_context(file.tensors[job.pieces[i].tensor].name,
                 [&] { make_piece(job.pieces[i], i, buffers, work); });
    }
  });
}

void Repacker::make_piece(const Piece& piece, size_t index, JobBuffers& buffers,
                          WorkBuffers& work) {
  const PlannedFile& file = plan_.files[piece.file];
  const PlannedTensor& tensor = file.tensors[piece.tensor];
  const Output& output = (*file.outputs)[tensor.output];
  buffers.pieces[index] = unchanged(piece, buffers);
  if (!buffers.pieces[index].empty()) return;
  const MutableBytes out = buffers.decoded[index].get(piece.granules * tensor.granule_bytes);
  buffers.pieces[index] = out;
  const MutableBytes scratch = work.scratch.get(scratch_bytes(output, Direction::kForward));
  const auto slots = slots_read(output);
  for (int64_t g = 0; g < piece.granules; ++g) {
    SlotBytes granule;
    for (size_t s = 0; s < slots.size(); ++s) {
      granule.set(slots[s], load(piece, piece.first_granule + g, slots[s], s, buffers, work));
    }
    check(file, output.slot, granule[output.slot]);
    run_forward(output, granule,
                out.subspan(static_cast<size_t>(g * tensor.granule_bytes),
                            static_cast<size_t>(tensor.granule_bytes)),
                scratch);
  }
}

ConstBytes Repacker::unchanged(const Piece& piece, const JobBuffers& buffers) {
  const PlannedFile& file = plan_.files[piece.file];
  const Output& output = (*file.outputs)[file.tensors[piece.tensor].output];
  const auto& assembly = file.assemblies[static_cast<size_t>(output.slot)];
  if (output.combination || !output.program.is_identity() || !assembly->identity()) return {};
  const ConstBytes bytes = buffers.read[0];
  if (bytes.empty()) return {};
  const size_t granule = bytes.size() / static_cast<size_t>(piece.granules);
  for (size_t at = 0; at < bytes.size(); at += granule) {
    check(file, output.slot, bytes.subspan(at, granule));
  }
  return bytes;
}

std::vector<Extent> Repacker::extents_of(const PlannedFile& file, Slot slot,
                                         ExpertRange range) const {
  const ExpertLayer& layer = model_.layers[file.layer];
  const auto& experts = layer.slot(slot).experts;
  const auto& of_rank = plan_.ranks[file.rank].experts_of(layer.dims.num_experts);
  std::vector<Extent> extents;
  if (experts.empty()) return extents;  // the slot is absent
  for (int64_t e = range.first; e < range.first + range.count; ++e) {
    const auto global = static_cast<size_t>(of_rank[static_cast<size_t>(e)]);
    const auto& parts = experts[global];
    extents.insert(extents.end(), parts.begin(), parts.end());
  }
  return extents;
}

void Repacker::check(const PlannedFile& file, Slot slot, ConstBytes granule) {
  if (layout_ == nullptr || !checks_data(*layout_)) return;
  const std::string warning = check_granule(*layout_, {file.loaded, parameters_}, slot, granule);
  if (warning.empty()) return;
  const std::scoped_lock lock(mutex_);
  warnings_.insert(warning);
}

ConstBytes Repacker::load(const Piece& piece, int64_t granule, Slot slot, size_t slot_index,
                          const JobBuffers& buffers, WorkBuffers& work) {
  const PlannedFile& file = plan_.files[piece.file];
  const Assembly& assembly = *file.assemblies[static_cast<size_t>(slot)];
  const Output& output = (*file.outputs)[file.tensors[piece.tensor].output];
  const int64_t experts = output.experts_per_granule;
  if (experts == 1 && assembly.identity()) {
    return stored_expert(piece, granule, slot, slot_index, buffers);
  }
  const auto loaded_bytes = static_cast<size_t>(assembly.loaded.bytes());
  const MutableBytes loaded =
      work.loaded[slot_index].get(experts * static_cast<int64_t>(loaded_bytes));
  for (int64_t e = 0; e < experts; ++e) {
    assembly.forward(stored_expert(piece, granule * experts + e, slot, slot_index, buffers),
                     loaded.subspan(static_cast<size_t>(e) * loaded_bytes, loaded_bytes));
  }
  return loaded;
}

ConstBytes Repacker::stored_expert(const Piece& piece, int64_t local, Slot slot, size_t slot_index,
                                   const JobBuffers& buffers) const {
  const PlannedFile& file = plan_.files[piece.file];
  const ConstBytes read = buffers.read[slot_index];
  if (read.empty()) return {};
  const Output& output = (*file.outputs)[file.tensors[piece.tensor].output];
  const auto bytes =
      static_cast<size_t>(file.assemblies[static_cast<size_t>(slot)]->stored.bytes());
  return read.subspan(static_cast<size_t>(local - experts_of(piece, output).first) * bytes, bytes);
}

std::vector<std::string> Repacker::warnings() const {
  const std::scoped_lock lock(mutex_);
  return {warnings_.begin(), warnings_.end()};
}

}  // namespace mxfp4
