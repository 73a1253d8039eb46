// CheckpointLoader::held_pass.
#include <optional>
#include <utility>

#include "formats/loader/checkpoint_loader.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// What loading takes of a stored matrix, where that is rows of it, the same columns of each.
std::optional<TakenRows> taken_rows(const Assembly& assembly) {
  TakenRows taken = {
      .stored_rows = assembly.stored.rows,
      .stored_row_bytes = assembly.stored.row_bytes,
      .row_bytes = assembly.loaded.row_bytes,
      .source = std::vector<int64_t>(static_cast<size_t>(assembly.loaded.rows), TakenRows::kFilled),
      .fill = assembly.fill};
  if (assembly.from != assembly.to || !assembly.tails.empty()) return std::nullopt;
  for (const CopyRect& rect : assembly.rects) {
    const CopyRect& first = assembly.rects.front();
    if (rect.from_col != first.from_col || rect.col_bytes != first.col_bytes) return std::nullopt;
    taken.first = rect.from_col;
    taken.columns = rect.col_bytes;
    for (int64_t row = 0; row < rect.rows; ++row) {
      taken.source[static_cast<size_t>(rect.to_row + row)] = rect.from_row + row * rect.step;
    }
  }
  return taken;
}

}  // namespace

HeldPass CheckpointLoader::held_pass(size_t layer, size_t tensor) const {
  const PlannedFile& file = made_.plan.files[layer];
  const PlannedTensor& of = file.tensors[tensor];
  const Output& output = (*file.outputs)[of.output];
  const auto refused = [] { return Error::unsupported("only CPUs can make it"); };
  if (output.combination || output.experts_per_granule != 1 || checks(output.slot)) {
    throw refused();
  }
  const Assembly& assembly = *file.assemblies[static_cast<size_t>(output.slot)];
  const SharedBy key(&output, assembly.stored.rows, assembly.stored.row_bytes);
  HeldPass pass;
  {
    const std::scoped_lock lock(held_mutex_);
    if (!held_.contains(key)) {
      const auto taken = taken_rows(assembly);
      auto plan = taken ? gather_plan(output.program, &*taken) : std::nullopt;
      held_[key] = plan ? std::make_shared<const GatherPlan>(std::move(*plan)) : nullptr;
    }
    pass.plan = held_[key];
  }
  if (pass.plan == nullptr) throw refused();
  pass.granules = of.bytes / of.granule_bytes;
  int64_t bytes = 0;
  for (int64_t expert = 0; expert < pass.granules; ++expert) {
    for (const Extent& extent : stored_of(file, output.slot, expert)) {
      const SourceTensor& stored = source_->tensors()[extent.tensor];
      pass.parts.push_back({stored.name, stored.spec.bytes(), extent.offset, extent.bytes});
      bytes += extent.bytes;
    }
  }
  if (bytes != pass.granules * raw_bytes(*pass.plan)) throw refused();
  return pass;
}

}  // namespace mxfp4
