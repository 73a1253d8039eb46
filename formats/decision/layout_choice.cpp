#include "formats/decision/layout_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "lib/layouts/knobs.hpp"
#include "lib/layouts/output.hpp"
#include "lib/plan/plan.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {

const Layout* require_layout(const Conversion& conversion) {
  const Target& target = conversion.target;
  const std::string_view name = backend_name(target.backend);
  if (conversion.row == nullptr) {
    if (target.arch.empty()) {
      throw Error::usage(
          fmt::format("the layout of {} differs between architectures: give --arch", name));
    }
    throw Error::unsupported(fmt::format("{} has no layout for family {} on {} {} in {}", name,
                                         family_name(target.family), platform_name(target.platform),
                                         target.arch, conversion.rules->name));
  }
  if (conversion.row->layout == nullptr) {
    throw Error::unsupported(fmt::format("{} on {} has no layout in {}: {}", name,
                                         target.arch.empty() ? platform_name(target.platform)
                                                             : std::string_view(target.arch),
                                         conversion.rules->name, conversion.row->refusal))
        .reference_type(std::string(conversion.row->refusal_type));
  }
  return conversion.row->layout;
}

void check_preconditions(const Conversion& conversion, const ModelLayers& model) {
  using Key = std::tuple<int64_t, int64_t, int64_t, std::optional<DType>, bool>;
  std::set<Key> asked;
  for (const ExpertLayer& layer : model.layers) {
    for (const RankSlice& rank : conversion.ranks) {
      const LoadedSpec loaded = loaded_spec(model, layer, rank);
      const LayerDims& dims = loaded.dims;
      if (!asked
               .insert({dims.num_experts, dims.hidden_size, dims.intermediate_size, loaded.bias,
                        loaded.input_scales})
               .second) {
        continue;
      }
      in_context(layer.prefix, [&] {
        loaded.check();
        if (conversion.layout == nullptr) return;
        (void)make_outputs(*conversion.layout, {loaded, layout_parameters(conversion.target)});
      });
    }
  }
}

namespace {

void read_expert(Source& source, const std::vector<Extent>& extents, MutableBytes out) {
  size_t at = 0;
  for (const Extent& extent : extents) {
    const auto bytes = static_cast<size_t>(extent.bytes);
    source.read(extent.tensor, extent.offset, out.subspan(at, bytes));
    at += bytes;
  }
}

// Throws if the layout cannot hold the scales of one slot. Reads each expert once.
void check_slot(const Conversion& conversion, const OpenedCheckpoint& checkpoint,
                const ExpertLayer& layer, Slot slot) {
  const auto& experts = layer.slot(slot).experts;
  std::vector<std::byte> loaded;
  for (size_t expert = 0; expert < experts.size(); ++expert) {
    std::vector<std::byte> stored;
    for (const RankSlice& rank : conversion.ranks) {
      const auto& of_rank = rank.experts_of(layer.dims.num_experts);
      const auto wanted = static_cast<int64_t>(expert);
      if (std::ranges::find(of_rank, wanted) == of_rank.end()) continue;
      const Assembly assembly = make_assembly(checkpoint.model, layer, slot, rank);
      if (stored.empty()) {
        stored.resize(static_cast<size_t>(assembly.stored.bytes()));
        read_expert(*checkpoint.source, experts[expert], stored);
      }
      loaded.resize(static_cast<size_t>(assembly.loaded.bytes()));
      assembly.forward(stored, loaded);
      in_context(fmt::format("{}, expert {}", layer.prefix, expert), [&] {
        (void)check_granule(
            *conversion.layout,
            {loaded_spec(checkpoint.model, layer, rank), layout_parameters(conversion.target)},
            slot, loaded);
      });
    }
  }
}

}  // namespace

void check_scales(const Conversion& conversion, const OpenedCheckpoint& checkpoint) {
  if (checkpoint.imagined) return;  // only the weights can tell
  if (conversion.layout == nullptr || !refuses_scales(*conversion.layout)) return;
  for (const ExpertLayer& layer : checkpoint.model.layers) {
    check_slot(conversion, checkpoint, layer, Slot::kW13WeightScale);
    check_slot(conversion, checkpoint, layer, Slot::kW2WeightScale);
  }
}

}  // namespace mxfp4
