#include "lib/load/layer_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "lib/core/checked.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();
constexpr size_t kCellsPerExpert = kProjections * kFields;

constexpr std::array kFusedParts = {Projection::kGateUp};
constexpr std::array kSplitParts = {Projection::kGate, Projection::kUp};
constexpr std::array kDownPart = {Projection::kDown};

// torch copies no F4 into the bytes of a parameter.
constexpr std::array kCodeTypes = {DType::kU8, DType::kI8};
constexpr std::array kFloatTypes = {DType::kBF16, DType::kF16, DType::kF32};
// Containers without BF16 hold its bits as integers.
constexpr std::array kLoadedBiases = {DType::kBF16, DType::kF16, DType::kF32, DType::kU16};

bool is_float(DType dtype) { return std::ranges::find(kFloatTypes, dtype) != kFloatTypes.end(); }

}  // namespace

LayerTable::FieldRule LayerTable::rule(Field field) const {
  if (field == Field::kCodes) return {"MXFP4 codes", kCodeTypes};
  if (field == Field::kScales) return {"e8m0 scales", scale_types(*row_, encodes_scales_)};
  if (field == Field::kInputScale) return {"an input scale", kFloatTypes};
  if (row_->style == Style::kLoaded) return {"a bias", kLoadedBiases};
  return {"a bias", kFloatTypes};
}

void LayerTable::check_dtype(const NamedTensor& tensor, Field field) const {
  const auto legal = rule(field).dtypes;
  if (std::find(legal.begin(), legal.end(), tensor.spec.dtype) != legal.end()) return;
  std::string names;
  for (const DType dtype : legal) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", dtype_name(dtype));
  }
  const bool one = legal.size() == 1;
  refuse_tensor(tensor, fmt::format("{} must be {}{}, found {}{}", rule(field).what,
                                    one ? "" : "one of ", names, dtype_name(tensor.spec.dtype),
                                    one ? ": the engine's loader copies numbers into bytes" : ""));
}

namespace {

// Whether the blocks of 32 codes are a dimension of the codes.
bool has_blocks(const StyleRow& row) {
  return row.suffixes[static_cast<size_t>(Field::kCodes)].ends_with("blocks");
}

}  // namespace

LayerTable::LayerTable(const std::vector<NamedTensor>& tensors, const StyleRow& row,
                       const ExpertTensorName& first, bool encodes_scales)
    : tensors_(&tensors),
      row_(&row),
      encodes_scales_(encodes_scales),
      module_(first.module),
      layer_(first.layer),
      draft_(first.draft),
      numbered_words_(first.word.starts_with('w')) {}

bool LayerTable::fused() const {
  return row_->projections.front().projection == Projection::kGateUp;
}

size_t LayerTable::find(int64_t expert, Projection projection, Field field) const {
  const auto at = static_cast<size_t>(row_->stacked ? 0 : expert) * kCellsPerExpert +
                  static_cast<size_t>(projection) * kFields + static_cast<size_t>(field);
  return at < cells_.size() ? cells_[at] : kNone;
}

void LayerTable::add(size_t tensor, const ExpertTensorName& name) {
  entries_.push_back({std::max<int64_t>(name.expert, 0), name.projection, name.field, tensor});
}

bool LayerTable::not_mxfp4() const {
  return std::ranges::none_of(entries_, [&](const Entry& entry) {
    if (entry.field != Field::kCodes && entry.field != Field::kScales) return false;
    const auto legal = rule(entry.field).dtypes;
    return std::ranges::find(legal, (*tensors_)[entry.tensor].spec.dtype) != legal.end();
  });
}

bool LayerTable::flat_scales() const {
  return row_->stacked && std::ranges::any_of(entries_, [&](const Entry& entry) {
           return entry.field == Field::kScales && (*tensors_)[entry.tensor].spec.shape.rank() == 2;
         });
}

std::vector<size_t> LayerTable::members() const {
  std::vector<size_t> out;
  for (const Entry& entry : entries_) out.push_back(entry.tensor);
  return out;
}

// A layer of n tensors has at most n experts, so a number from a name is bounded before it sizes
// anything.
void LayerTable::arrange() {
  int64_t experts = 0;
  for (const Entry& entry : entries_) {
    if (entry.expert >= static_cast<int64_t>(entries_.size())) {
      refuse_tensor((*tensors_)[entry.tensor],
                    fmt::format("expert {} of a layer with {} tensors: others are missing",
                                entry.expert, entries_.size()));
    }
    experts = std::max(experts, entry.expert + 1);
  }
  cells_.assign(static_cast<size_t>(experts) * kCellsPerExpert, kNone);
  for (const Entry& entry : entries_) {
    size_t& place =
        cells_[static_cast<size_t>(entry.expert) * kCellsPerExpert +
               static_cast<size_t>(entry.projection) * kFields + static_cast<size_t>(entry.field)];
    if (place != kNone) {
      const NamedTensor& other = (*tensors_)[place];
      refuse_tensor((*tensors_)[entry.tensor],
                    fmt::format("given twice, also as {} in {}", other.name, other.file));
    }
    place = entry.tensor;
  }
}

void LayerTable::require_gated() const {
  if (fused()) return;
  const auto some = [&](Projection projection) {
    return std::ranges::find(entries_, projection, &Entry::projection) != entries_.end();
  };
  if (some(Projection::kGate) == some(Projection::kUp) || !some(Projection::kDown)) return;
  throw Error::input(fmt::format("its experts are ungated, with two projections such as {}; this "
                                 "program repacks gated experts only",
                                 witness().name))
      .at_key(module_)
      .in_file(witness().file);
}

size_t LayerTable::require(int64_t expert, Projection projection, Field field) const {
  const size_t found = find(expert, projection, field);
  if (found != kNone) return found;
  std::string_view word;
  for (const ProjectionWord& candidate : row_->projections) {
    if (candidate.projection != projection) continue;
    if (word.empty() || candidate.word.starts_with('w') == numbered_words_) word = candidate.word;
  }
  const std::string name = expert_tensor_name(*row_, module_, expert, word, field);
  throw Error::input(fmt::format("missing; the layer also has {} ({})", witness().name,
                                 dtype_name(witness().spec.dtype)))
      .at_key(name)
      .in_file(witness().file);
}

const NamedTensor& LayerTable::sizes_from() const {
  return (*tensors_)[require(0, row_->projections.front().projection, Field::kCodes)];
}

// The number of experts that the layer must have. Where it has more than the config says, the error
// names the first one too many.
int64_t LayerTable::count_experts(const Wanted& wanted) const {
  if (row_->stacked) {
    const NamedTensor& codes = sizes_from();
    if (codes.spec.shape.rank() == 0) refuse_tensor(codes, "a scalar has no experts");
    return codes.spec.shape[0];
  }
  const auto present = static_cast<int64_t>(cells_.size() / kCellsPerExpert);
  if (!wanted.num_experts || present <= *wanted.num_experts) {
    const int64_t experts = wanted.num_experts.value_or(present);
    for (int64_t expert = 0; expert < experts; ++expert) {
      (void)require(expert, row_->projections.front().projection, Field::kCodes);
    }
    return experts;
  }
  const auto from = cells_.begin() + *wanted.num_experts * static_cast<int64_t>(kCellsPerExpert);
  const auto beyond = std::find_if(from, cells_.end(), [](size_t c) { return c != kNone; });
  refuse_tensor((*tensors_)[*beyond],
                fmt::format("beyond the {} experts of the model", *wanted.num_experts));
}

LayerTable::Sizes LayerTable::read_sizes(int64_t experts) const {
  const NamedTensor& codes = sizes_from();
  check_dtype(codes, Field::kCodes);
  const Shape& shape = codes.spec.shape;
  const bool blocks = has_blocks(*row_);
  const int rank = blocks ? 4 : row_->stacked ? 3 : 2;
  if (shape.rank() != rank) {
    refuse_tensor(codes, fmt::format("shape {} must have {} dimensions", shape.to_string(), rank));
  }
  const int64_t last = checked_mul(shape[rank - 1], kCodesPerByte);
  if (blocks && last != kBlock) {
    refuse_tensor(codes, fmt::format("shape {} has blocks of {} codes, MXFP4 has {}",
                                     shape.to_string(), last, kBlock));
  }
  const int64_t rows = shape[row_->stacked ? 1 : 0];
  if (fused() && rows % 2 != 0) {
    refuse_tensor(codes, fmt::format("shape {} has {} rows, gate and up need an even number",
                                     shape.to_string(), rows));
  }
  LoadedSpec spec;
  spec.dims.num_experts = experts;
  spec.dims.hidden_size = blocks ? checked_mul(shape[2], kBlock) : last;
  spec.dims.intermediate_size = fused() ? rows / 2 : rows;
  in_file(codes.file, [&] { in_context(codes.name, [&] { spec.check(); }); });
  if (experts == 0 || rows == 0) {
    refuse_tensor(codes, fmt::format("shape {} is empty", shape.to_string()));
  }
  return {spec.dims, rows};
}

void LayerTable::check_tensor(size_t tensor, Projection projection, Field field,
                              const Sizes& sizes) const {
  const NamedTensor& found = (*tensors_)[tensor];
  check_dtype(found, field);
  const Shape& shape = found.spec.shape;
  const bool down = projection == Projection::kDown;
  const int64_t rows = down ? sizes.dims.hidden_size : sizes.w13_rows;
  const int64_t columns = down ? sizes.dims.intermediate_size : sizes.dims.hidden_size;
  std::vector<int64_t> want;
  if (row_->stacked) want.push_back(sizes.dims.num_experts);
  if (field == Field::kInputScale) {
    if (!row_->stacked && shape.rank() == 1 && shape[0] == 1) return;
  } else {
    want.push_back(rows);
  }
  if (field == Field::kScales) want.push_back(columns / kBlock);
  if (field == Field::kCodes && has_blocks(*row_)) {
    want.push_back(columns / kBlock);
    want.push_back(kBlock / kCodesPerByte);
  } else if (field == Field::kCodes) {
    want.push_back(columns / kCodesPerByte);
  }
  if (field == Field::kScales && row_->stacked && !has_blocks(*row_) && shape.rank() == 2) {
    want = {checked_mul(want[0], want[1]), want[2]};  // Quark's converter stores them so
  }
  if (!std::equal(want.begin(), want.end(), shape.dims().begin(), shape.dims().end())) {
    refuse_tensor(
        found, fmt::format("shape {} instead of {} ({} experts, hidden size {}, intermediate size "
                           "{})",
                           shape.to_string(), Shape(want).to_string(), sizes.dims.num_experts,
                           sizes.dims.hidden_size, sizes.dims.intermediate_size));
  }
}

SlotSource LayerTable::gather(std::span<const Projection> parts, Field field,
                              const Sizes& sizes) const {
  SlotSource slot;
  slot.experts.resize(static_cast<size_t>(sizes.dims.num_experts));
  size_t before = kNone;
  for (int64_t expert = 0; expert < sizes.dims.num_experts; ++expert) {
    auto& extents = slot.experts[static_cast<size_t>(expert)];
    extents.reserve(parts.size());
    for (const Projection projection : parts) {
      const size_t tensor = require(expert, projection, field);
      const NamedTensor& found = (*tensors_)[tensor];
      if (tensor != before) check_tensor(tensor, projection, field, sizes);
      const DType carried = is_float(found.spec.dtype)        ? found.spec.dtype
                            : found.spec.dtype == DType::kU16 ? DType::kBF16
                                                              : DType::kU8;
      if (before != kNone && carried != slot.dtype) {
        refuse_tensor(found, fmt::format("is {}, but {} is {}", dtype_name(found.spec.dtype),
                                         (*tensors_)[before].name, dtype_name(slot.dtype)));
      }
      slot.dtype = carried;
      before = tensor;
      const int64_t share = found.spec.bytes() / (row_->stacked ? sizes.dims.num_experts : 1);
      extents.push_back({tensor, row_->stacked ? expert * share : 0, share});
    }
  }
  return slot;
}

// One value an expert. Gate and up write the same place: the one loaded later stays. Files are
// loaded in their order, the tensors of a file by name, where up comes after gate.
SlotSource LayerTable::gather_input_scales(std::span<const Projection> parts,
                                           const Sizes& sizes) const {
  SlotSource slot = gather(parts, Field::kInputScale, sizes);
  for (auto& extents : slot.experts) {
    if (extents.size() < 2) continue;
    const NamedTensor& gate = (*tensors_)[extents[0].tensor];
    const NamedTensor& up = (*tensors_)[extents[1].tensor];
    const bool gate_later = gate.file != up.file && extents[0].tensor > extents[1].tensor;
    extents.erase(gate_later ? extents.begin() + 1 : extents.begin());
  }
  return slot;
}

ExpertLayer LayerTable::build(const Wanted& wanted) {
  arrange();
  require_gated();
  const Sizes sizes = read_sizes(count_experts(wanted));
  const std::span<const Projection> w13 =
      fused() ? std::span<const Projection>(kFusedParts) : std::span<const Projection>(kSplitParts);
  ExpertLayer layer;
  layer.prefix = module_;
  layer.dims = sizes.dims;
  const auto set = [&](Slot slot, SlotSource source) {
    layer.slots[static_cast<size_t>(slot)] = std::move(source);
  };
  set(Slot::kW13Weight, gather(w13, Field::kCodes, sizes));
  set(Slot::kW2Weight, gather(kDownPart, Field::kCodes, sizes));
  set(Slot::kW13WeightScale, gather(w13, Field::kScales, sizes));
  set(Slot::kW2WeightScale, gather(kDownPart, Field::kScales, sizes));
  const bool some = std::ranges::find(entries_, Field::kBias, &Entry::field) != entries_.end();
  if (row_->bias == BiasRule::kRequired || (wanted.biases && some)) {
    set(Slot::kW13Bias, gather(w13, Field::kBias, sizes));
    set(Slot::kW2Bias, gather(kDownPart, Field::kBias, sizes));
  } else if (row_->bias == BiasRule::kNeverFilled && !wanted.biases && wanted.unfilled_biases) {
    const SlotSource unfilled{row_->bias_dtype,
                              {static_cast<size_t>(sizes.dims.num_experts), std::vector<Extent>{}}};
    set(Slot::kW13Bias, unfilled);
    set(Slot::kW2Bias, unfilled);
  }
  if (wanted.input_scales) {
    set(Slot::kW13InputScale, gather_input_scales(w13, sizes));
    set(Slot::kW2InputScale, gather_input_scales(kDownPart, sizes));
  }
  return layer;
}

int64_t layer_index(const LayerTable& table, const ModelConfig* config) {
  if (!table.draft()) return table.layer();
  if (config == nullptr || !config->num_hidden_layers) {
    Error error = Error::input(fmt::format("missing, needed to number {}", table.module()))
                      .at_key("num_hidden_layers");
    throw config == nullptr ? error.add_context("config.json") : error.in_file(config->file);
  }
  return in_file(config->file, [&] {
    return in_context("num_hidden_layers",
                      [&] { return checked_add(*config->num_hidden_layers, table.layer()); });
  });
}

}  // namespace mxfp4
