#include "lib/load/slice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// The gpt-oss loaders cut whole scale blocks of the checkpoint; the generic one strides as
// GenericStride says.
bool strides_by_blocks(const ModelLayers& model) {
  switch (model.loader) {
    case Loader::kGptOssStacked:
    case Loader::kGptOssPerExpert:
    case Loader::kQuarkStacked:
      return true;
    case Loader::kInklingStacked:
    case Loader::kGeneric:
      return false;
    case Loader::kLoaded:
      break;
  }
  return model.family == Family::kGptOss;
}

// The gpt-oss loaders give a rank the experts from rank * floor(E / ep) on, whatever the expert map
// says.
bool needs_even_experts(const ModelLayers& model) {
  return model.loader != Loader::kGeneric && strides_by_blocks(model);
}

[[noreturn]] void refuse(const std::string& message, const char* reference_type) {
  throw Error::unsupported(message).reference_type(reference_type);
}

// DeepSeek-V4's model file also asserts that its experts divide by the tensor parallel size. Its
// loader, which this code follows, loads any number.
void check_experts(const ModelLayers& model, int64_t experts, const World& world,
                   const SliceOptions& options) {
  if (world.ep == 1) return;
  const int64_t slots = checked_add(experts, options.redundant_experts);
  if (options.even_experts && slots % world.ep != 0) {
    refuse(fmt::format("{} experts{} are not divisible by {} expert-parallel ranks", slots,
                       options.redundant_experts > 0 ? ", redundant ones too," : "", world.ep),
           "ValueError");
  }
  if (!model.splits_experts) {
    refuse("the input is one expert-parallel rank's already", "");
  }
  if (world.ep > slots) {
    refuse(fmt::format("{} expert-parallel ranks for {} experts", world.ep, experts), "");
  }
  if (model.loader == Loader::kGptOssPerExpert) {
    refuse("the reference cannot load per-expert gpt-oss checkpoints with expert parallelism",
           "IndexError");
  }
  if (needs_even_experts(model) && experts % world.ep != 0) {
    refuse(fmt::format("{} experts are not divisible by {} expert-parallel ranks: the reference "
                       "loads wrong experts",
                       experts, world.ep),
           "RuntimeError");
  }
}

// The gpt-oss loaders add w2's bias on one rank; the generic one is not known to.
void check_biases(const ModelLayers& model, const World& world) {
  if (world.tp == 1 || model.loader != Loader::kGeneric) return;
  for (const ExpertLayer& layer : model.layers) {
    const SlotSource& bias = layer.slot(Slot::kW2Bias);
    if (bias.experts.empty() || bias.experts.front().empty()) continue;
    refuse(fmt::format("{}: biases in the generic loader are supported on one tensor-parallel rank "
                       "only, found {}",
                       layer.prefix, world.tp),
           "");
  }
}

void check_intermediate(const ModelLayers& model, const LayerDims& dims, const World& world,
                        const SliceOptions& options) {
  const int64_t inter = dims.intermediate_size;
  const bool gpt_oss = model.loader != Loader::kLoaded && strides_by_blocks(model);
  const int64_t divisor = gpt_oss && options.divides_by_all_ranks ? world.ranks : world.tp;
  if (inter % divisor != 0) {
    refuse(fmt::format("intermediate size {} is not divisible by {} ranks", inter, divisor),
           "AssertionError");
  }
  if (world.tp > 1 && !model.splits_intermediate) {
    refuse(
        "the intermediate dimension of this loaded input may hold padding: tensor parallel "
        "slices need an attribute intermediate_size that equals it",
        "");
  }
}

// The rows that a rank's parameters have before they are rounded.
int64_t rank_intermediate(int64_t intermediate, const World& world, const SliceOptions& options) {
  const int64_t tp = options.parallel.tp_size;
  const bool asked = options.round && tp > 1 &&
                     (options.least_slice_with_experts || !options.parallel.enable_expert_parallel);
  if (!asked || intermediate / tp >= options.least_slice) return intermediate / world.tp;
  return checked_mul(options.least_slice, tp) / world.tp;
}

LayerDims pad_sizes(LayerDims sizes, const SliceOptions& options) {
  if (!options.round) return sizes;
  if (options.round_hidden) sizes.hidden_size = options.round_hidden(sizes.hidden_size);
  if (options.round_sizes) sizes = options.round_sizes(sizes);
  return sizes;
}

// The distance in the intermediate dimension from where one TP rank begins to where the next does.
int64_t stride_of(const ModelLayers& model, const LayerDims& dims, const LayerDims& padded,
                  const World& world, GenericStride generic) {
  if (strides_by_blocks(model)) {
    return checked_mul(ceil_div(dims.intermediate_size / kBlock, world.tp), kBlock);
  }
  const bool by_padded =
      generic == GenericStride::kPadded && model.loader != Loader::kInklingStacked;
  return by_padded ? padded.intermediate_size : dims.intermediate_size / world.tp;
}

// Inkling's own loader: it pads I on ROCm only, H nowhere, and adds experts of zeros for uneven
// ranks. Elsewhere it indexes scales by expert, which scales of two dimensions do not allow.
void check_inkling(const ModelLayers& model, const LayerDims& dims, const LayerDims& padded,
                   const World& world, const SliceOptions& options) {
  if (model.loader != Loader::kInklingStacked) return;
  if (model.flat_scales && !options.rocm) {
    refuse(
        "Inkling's scales of two dimensions, experts and rows in one: the engine loads them on "
        "ROCm only",
        "RuntimeError");
  }
  if (dims.num_experts % world.ep != 0) {
    refuse(
        fmt::format("{} experts over {} expert-parallel ranks: the engine adds experts of zeros, "
                    "which a blob does not hold",
                    dims.num_experts, world.ep),
        "");
  }
  if (padded.hidden_size != dims.hidden_size ||
      (!options.rocm && padded.intermediate_size != dims.intermediate_size / world.tp)) {
    refuse(
        fmt::format("Inkling's stacked tensors cannot be padded here: hidden size {} to {}, {} of "
                    "the intermediate size to {}",
                    dims.hidden_size, padded.hidden_size, dims.intermediate_size / world.tp,
                    padded.intermediate_size),
        "RuntimeError");
  }
}

// Global ids of the experts on a rank; the first (E + redundant) mod ep ranks hold one more.
std::vector<int64_t> experts_of(int64_t experts, int64_t redundant, int64_t ep, int64_t rank,
                                bool round_robin) {
  const int64_t slots = checked_add(experts, redundant);
  const int64_t base = slots / ep;
  const int64_t more = slots % ep;
  const int64_t count = base + (rank < more ? 1 : 0);
  const int64_t first = round_robin ? rank : rank * base + std::min(rank, more);
  std::vector<int64_t> out;
  out.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    out.push_back((first + i * (round_robin ? ep : 1)) % experts);
  }
  return out;
}

}  // namespace

const std::vector<int64_t>& RankSlice::experts_of(int64_t num_experts) const {
  const auto other = other_experts.find(num_experts);
  return other == other_experts.end() ? experts : other->second;
}

std::vector<RankSlice> slice_ranks(const ModelLayers& model, const LayerDims& dims,
                                   const SliceOptions& options) {
  const World world = world_of(options.parallel);
  std::set<int64_t> other_numbers;
  for (const ExpertLayer& layer : model.layers) other_numbers.insert(layer.dims.num_experts);
  other_numbers.erase(dims.num_experts);
  other_numbers.erase(0);  // a layer whose size is not known has the model's
  check_experts(model, dims.num_experts, world, options);
  for (const int64_t experts : other_numbers) check_experts(model, experts, world, options);
  check_intermediate(model, dims, world, options);
  check_biases(model, world);

  LayerDims padded = dims;
  padded.intermediate_size = rank_intermediate(dims.intermediate_size, world, options);
  padded = pad_sizes(padded, options);
  check_inkling(model, dims, padded, world, options);
  const int64_t stride = stride_of(model, dims, padded, world, options.generic_stride);
  if (padded.intermediate_size % kBlock != 0 || stride % kBlock != 0) {
    refuse(fmt::format("intermediate size {} over {} ranks gives shards of {}, not whole scale "
                       "blocks of {}",
                       dims.intermediate_size, world.tp, std::min(padded.intermediate_size, stride),
                       kBlock),
           "RuntimeError");
  }
  const bool round_robin = options.placement == ExpertPlacement::kRoundRobin &&
                           options.round_robin && options.n_group.value_or(1) > 1;

  std::vector<RankSlice> out;
  for (int64_t rank = 0; rank < world.ranks; ++rank) {
    RankSlice slice;
    slice.rank = rank;
    slice.num_ranks = world.ranks;
    slice.tp_size = world.tp;
    slice.ep_size = world.ep;
    (world.ep > 1 ? slice.ep_rank : slice.tp_rank) = rank;
    const auto share = [&](int64_t experts) {
      return experts_of(experts, options.redundant_experts, world.ep, slice.ep_rank, round_robin);
    };
    slice.experts = share(dims.num_experts);
    for (const int64_t experts : other_numbers) slice.other_experts[experts] = share(experts);
    slice.padded = padded;
    slice.padded.num_experts = static_cast<int64_t>(slice.experts.size());
    slice.begin = std::min(checked_mul(slice.tp_rank, stride), dims.intermediate_size);
    slice.end = std::min(checked_add(slice.begin, stride), dims.intermediate_size);
    if (slice.begin == slice.end) slice.begin = slice.end = 0;  // only padding
    slice.w2_bias = slice.tp_rank == 0;
    const bool exact = padded.hidden_size == dims.hidden_size &&
                       padded.intermediate_size == slice.end - slice.begin;
    if (model.loader == Loader::kQuarkStacked && !exact) {
      refuse(
          fmt::format("stacked gpt-oss tensors under a Quark config cannot be padded: hidden size "
                      "{} to {}, {} of the intermediate size to {}",
                      dims.hidden_size, padded.hidden_size, slice.end - slice.begin,
                      padded.intermediate_size),
          "RuntimeError");
    }
    out.push_back(std::move(slice));
  }
  return out;
}

}  // namespace mxfp4
