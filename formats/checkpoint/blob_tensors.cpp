#include "formats/checkpoint/blob_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/restored_slots.hpp"
#include "lib/core/checked.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/load/describe_published.hpp"
#include "lib/load/style_rows.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// Which part of which slot a tensor is.
struct Part {
  Slot slot = Slot::kW13Weight;
  bool shared = false;  // gate and up have one value
  bool half = false;    // gate or up: half of the matrix
  bool second = false;  // up
};

// Slots of a field: of w13, of w2.
constexpr std::array<std::array<Slot, 2>, kFields> kSlotsOfField = {{
    {Slot::kW13Weight, Slot::kW2Weight},
    {Slot::kW13WeightScale, Slot::kW2WeightScale},
    {Slot::kW13Bias, Slot::kW2Bias},
    {Slot::kW13InputScale, Slot::kW2InputScale},
}};

Part part_of(const ExpertTensorName& name) {
  const bool down = name.projection == Projection::kDown;
  const bool scalar = name.field == Field::kInputScale;  // gate and up share one value
  const bool half = name.projection == Projection::kGate || name.projection == Projection::kUp;
  return {.slot = kSlotsOfField[static_cast<size_t>(name.field)][down ? 1 : 0],
          .shared = half && scalar,
          .half = half && !scalar,
          .second = name.projection == Projection::kUp && !scalar};
}

// The part that a tensor of the layer is, by the names of the blob's style.
Part find_part(const Manifest& manifest, const std::string& prefix, const std::string& name) {
  const std::string_view tail = std::string_view(name).substr(prefix.size() + 1);
  if (manifest.style == style_name(Style::kLoaded)) {
    if (const auto slot = slot_from_name(tail)) return {.slot = *slot};
  }
  for (const StyleRow& row : style_rows()) {
    if (style_name(row.style) != manifest.style || row.loader != manifest.loader) continue;
    const auto parsed = parse_expert_name(row, name);
    if (parsed && parsed->module == prefix) return part_of(*parsed);
  }
  throw Error::input(fmt::format("{}: not a name of style {}", name, manifest.style));
}

bool is_bias_slot(Slot slot) { return slot == Slot::kW13Bias || slot == Slot::kW2Bias; }
bool is_float_slot(Slot slot) {
  return is_bias_slot(slot) || slot == Slot::kW13InputScale || slot == Slot::kW2InputScale;
}

// The type in which the checkpoint's floats can be given back; sets `rounded` where that is
// another one.
DType kept_type(DType published, DType loaded, bool& rounded) {
  rounded = published != loaded && loaded != DType::kF32;
  return rounded ? loaded : published;
}

// The holders of every expert of one layer, whose shares of the intermediate dimension must
// be whole.
std::vector<std::vector<ExpertHolder>> find_holders(const std::vector<Manifest>& manifests,
                                                    size_t layer, const LayerDims& dims) {
  const auto recipe_of = [&](size_t rank) -> const Recipe& {
    return manifests[rank].layers[layer].recipe;
  };
  std::vector<std::vector<ExpertHolder>> holders(static_cast<size_t>(dims.num_experts));
  for (size_t rank = 0; rank < manifests.size(); ++rank) {
    const Recipe& recipe = recipe_of(rank);
    const std::vector<int64_t>& experts = recipe.experts;
    for (size_t i = 0; i < experts.size(); ++i) {
      if (experts[i] >= dims.num_experts) throw Error::input("recipe: experts: beyond the model's");
      auto& own = holders[static_cast<size_t>(experts[i])];
      const bool again = std::ranges::any_of(own, [&](const ExpertHolder& other) {
        const Recipe& there = recipe_of(other.rank);
        return there.intermediate_begin == recipe.intermediate_begin &&
               there.intermediate_end == recipe.intermediate_end;
      });
      if (!again) own.push_back({rank, static_cast<int64_t>(i)});
    }
  }
  for (const auto& own : holders) {
    int64_t covered = 0;
    for (const ExpertHolder& holder : own) {
      if (recipe_of(holder.rank).intermediate_begin != covered) continue;
      covered = recipe_of(holder.rank).intermediate_end;
    }
    if (covered != dims.intermediate_size) throw Error::input("its ranks are not the whole model");
  }
  return holders;
}

// Adds the layer's tensors and their places.
class LayerDescriber {
 public:
  LayerDescriber(BlobTensors& out, const Manifest& manifest, size_t index, LayerDims dims)
      : out_(out), manifest_(manifest), stated_(manifest.layers[index]), index_(index) {
    layer_.layer.index = stated_.index;
    layer_.layer.prefix = stated_.prefix;
    layer_.layer.dims = dims;
  }

  BlobLayer describe() {
    for (NamedTensor& tensor : published_tensors(stated_.prefix, *stated_.published)) {
      if (tensor.file.empty()) tensor.file = shard_of_layer();
      in_context(std::string(tensor.name), [&] { add(std::move(tensor)); });
    }
    return std::move(layer_);
  }

 private:
  // Where a layer lies whose checkpoint is not made of safetensors files.
  [[nodiscard]] std::string shard_of_layer() const {
    return fmt::format("model-{:05}-of-{:05}", index_ + 1, manifest_.layers.size());
  }

  void add(NamedTensor tensor) {
    const Part part = find_part(manifest_, stated_.prefix, tensor.name);
    if (!stated_.recipe.loaded().has(part.slot))
      throw Error::input("not a tensor that the blob holds");
    const DType dtype = stored_type(part.slot, tensor.spec);
    if (part.shared) {
      out_.lost.push_back(fmt::format("{}: gate and up have the one value that the engine keeps",
                                      slot_name(part.slot)));
    }
    const LayerDims& dims = layer_.layer.dims;
    const bool stacked = stated_.published->experts == 0;
    BlobPlace place{.layer = index_, .slot = part.slot, .expert = stacked ? -1 : next_expert()};
    const int64_t whole = is_input_scale(part.slot)
                              ? dtype_bytes(dtype)
                              : LoadedSpec{dims, dtype, true}.expert(part.slot).bytes();
    place.bytes = part.half ? whole / 2 : whole;
    place.begin = part.second ? whole / 2 : 0;
    const int64_t bytes = checked_mul(place.bytes, stacked ? dims.num_experts : 1);
    if (tensor.spec.bytes() != bytes) {
      throw Error::input(fmt::format("{} bytes by the manifest, its layer's sizes give {}",
                                     tensor.spec.bytes(), bytes));
    }
    SlotSource& source = layer_.layer.slots[static_cast<size_t>(part.slot)];
    source.dtype = dtype;
    source.experts.assign(1, {Extent{}});
    out_.tensors.push_back({std::move(tensor.name), tensor.spec, std::move(tensor.file), {}});
    out_.places.push_back(place);
  }

  static bool is_input_scale(Slot slot) {
    return slot == Slot::kW13InputScale || slot == Slot::kW2InputScale;
  }

  // The expert of the next tensor: the tensors of an expert follow one another.
  int64_t next_expert() { return added_++ / std::ssize(stated_.published->tensors); }

  // The type of the matrix's elements. Sets the tensor's own, where it cannot be given back.
  DType stored_type(Slot slot, TensorSpec& spec) {
    if (!is_float_slot(slot)) {
      const bool floats =
          spec.dtype == DType::kF32 || spec.dtype == DType::kBF16 || spec.dtype == DType::kF16;
      if (floats) {
        out_.lost.push_back(fmt::format("{} is U8: the engine's loader keeps exponents of {}",
                                        slot_name(slot), dtype_name(spec.dtype)));
        spec.dtype = DType::kU8;
      }
      return DType::kU8;
    }
    const DType loaded = is_bias_slot(slot) ? *stated_.recipe.bias : DType::kF32;
    const DType carried = spec.dtype == DType::kU16 ? DType::kBF16 : spec.dtype;
    bool rounded = false;
    const DType kept = kept_type(carried, loaded, rounded);
    if (rounded) {
      out_.lost.push_back(fmt::format("{} is {}: the engine's loader rounds {} to that",
                                      slot_name(slot), dtype_name(kept), dtype_name(carried)));
      spec.dtype = kept;
    }
    return kept;
  }

  BlobTensors& out_;
  const Manifest& manifest_;
  const ManifestLayer& stated_;
  size_t index_;
  int64_t added_ = 0;
  BlobLayer layer_;
};

// The sizes of a whole layer.
LayerDims whole_dims(const ManifestLayer& layer) {
  const PublishedLayer& published = *layer.published;
  LayerDims dims{published.experts, layer.recipe.hidden_size, published.intermediate_size};
  if (published.experts == 0) {
    // Scales may have experts and rows in one dimension; codes have the most dimensions.
    const auto rank = [](const PublishedTensor& tensor) { return tensor.spec.shape.rank(); };
    const Shape& shape = std::ranges::max_element(published.tensors, {}, rank)->spec.shape;
    dims.num_experts = shape.rank() == 0 ? 0 : shape[0];
  }
  in_context(layer.prefix, [&] { LoadedSpec{dims, {}, false}.check(); });
  constexpr int64_t kMostExperts = int64_t{1} << 20;
  if (dims.num_experts > kMostExperts) {
    throw Error::input(fmt::format("{}: {} experts", layer.prefix, dims.num_experts));
  }
  return dims;
}

// The share of a layer that its recipe states.
RankSlice slice_of(const Recipe& recipe) {
  RankSlice slice;
  slice.begin = recipe.intermediate_begin;
  slice.end = recipe.intermediate_end;
  slice.padded = recipe.loaded().dims;
  slice.w2_bias = recipe.w2_bias;
  return slice;
}

void require_published(const fs::path& path, const std::vector<Manifest>& manifests) {
  const Manifest& first = manifests.front();
  for (size_t i = 0; i < first.layers.size(); ++i) {
    if (!first.layers[i].published) {
      throw Error::input("already packed, and does not say how its checkpoint names the experts")
          .in_file(path.string())
          .hint("convert the checkpoint, or unpack the blob and convert what that gives");
    }
    for (const Manifest& other : manifests) {
      if (other.layers.size() == first.layers.size() &&
          other.layers[i].published == first.layers[i].published) {
        continue;
      }
      throw Error::input("ranks of different conversions").in_file(path.string());
    }
  }
}

void require_all_ranks(const fs::path& path, const std::vector<Manifest>& manifests) {
  const int64_t all = manifests.front().rank.num_ranks;
  if (std::ssize(manifests) == all) return;
  const std::string missing = missing_ranks(path, manifests);
  if (!missing.empty()) {
    throw Error::input(missing).hint("the checkpoint is all ranks together");
  }
  throw Error::input(fmt::format("one of {} ranks", all))
      .in_file(path.string())
      .hint("the checkpoint is all ranks together: give the directory that holds them");
}

}  // namespace

Manifest as_loaded(const Manifest& rank) {
  Manifest loaded = rank;
  loaded.style = style_name(Style::kLoaded);
  loaded.rank = {};
  for (ManifestLayer& layer : loaded.layers) {
    const RestorePlan plan = plan_restore(rank, layer);
    Recipe& recipe = layer.recipe;
    LoadedSpec cropped = recipe.loaded();
    cropped.dims.hidden_size = recipe.hidden_size;
    cropped.dims.intermediate_size = recipe.intermediate_size();
    PublishedLayer form;
    form.intermediate_size = recipe.intermediate_size();
    for (const PlannedTensor& tensor :
         arrange_tensors(layer.prefix, loaded_outputs(cropped), cropped.dims.num_experts)) {
      std::string name = tensor.name.substr(layer.prefix.size() + 1);
      if (plan.slot(*slot_from_name(name)) == nullptr) continue;
      form.tensors.push_back({std::move(name), tensor.spec});
    }
    form.runs = {{layer_file_name(layer.index, false), std::ssize(form.tensors)}};
    recipe.intermediate_end -= std::exchange(recipe.intermediate_begin, 0);
    std::iota(recipe.experts.begin(), recipe.experts.end(), 0);
    recipe.w2_bias = recipe.bias.has_value();
    layer.published = std::move(form);
  }
  return loaded;
}

BlobTensors describe_blob_tensors(const fs::path& path, const std::vector<Manifest>& manifests) {
  require_all_ranks(path, manifests);
  require_published(path, manifests);
  const Manifest& first = manifests.front();
  const std::vector<fs::path> blobs = find_blobs(path);  // none if one cannot be looked at now
  const std::string stated_in = ((blobs.empty() ? path : blobs.front()) / kManifestName).string();
  BlobTensors out;
  out.model.loader = first.loader;
  out.model.alternating =
      first.style != style_name(Style::kLoaded) && first.loader == Loader::kInklingStacked;
  for (size_t i = 0; i < first.layers.size(); ++i) {
    in_file(stated_in, [&] {
      const Recipe& recipe = first.layers[i].recipe;
      out.model.order = recipe.order;
      if (recipe.bias) out.model.bias_dtype = *recipe.bias;
      const LayerDims dims = whole_dims(first.layers[i]);
      BlobLayer layer = LayerDescriber(out, first, i, dims).describe();
      in_context(fmt::format("layer {}", first.layers[i].index),
                 [&] { layer.holders = find_holders(manifests, i, dims); });
      for (const Manifest& manifest : manifests) {
        layer.slices.push_back(slice_of(manifest.layers[i].recipe));
      }
      out.layers.push_back(std::move(layer));
    });
  }
  std::ranges::sort(out.lost);
  const auto again = std::unique(out.lost.begin(), out.lost.end());
  out.lost.erase(again, out.lost.end());
  return out;
}

}  // namespace mxfp4
