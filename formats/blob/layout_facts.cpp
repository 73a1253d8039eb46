#include "formats/blob/layout_facts.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/layouts/all_layouts.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/output.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

// The layout says whose kernel reads it.
void check_library(const Manifest& manifest, const Layout* layout) {
  if (layout == nullptr || manifest.kernel_library == kernel_library_of(*layout)) return;
  throw Error::input(fmt::format("kernel_library: {}, expected {} by {}",
                                 in_quotes(manifest.kernel_library),
                                 in_quotes(kernel_library_of(*layout)), manifest.layout));
}

// The recipe's parameters follow from the target, as far as the layout reads it.
void check_parameters(const Recipe& recipe, const Layout* layout, const Target& target) {
  std::map<std::string, std::string> expected;
  try {
    if (layout != nullptr) {
      for (auto& [name, value] : parameters_of(*layout, layout_parameters(target))) {
        expected.emplace(name, std::move(value));
      }
    }
  } catch (const Error& error) {
    throw Error::input(error.what());  // of the target's knobs
  }
  if (recipe.parameters != expected) throw Error::input("recipe: parameters: not the target's");
}

void compare_tensors(const ManifestLayer& layer, const std::vector<Output>& outputs) {
  const std::vector<PlannedTensor> tensors =
      arrange_tensors(layer.prefix, outputs, layer.recipe.num_experts());
  if (tensors.size() != layer.tensors.size()) {
    throw Error::input(
        fmt::format("tensors: {}, the layout has {}", layer.tensors.size(), tensors.size()));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ManifestTensor& found = layer.tensors[i];
    const PlannedTensor& expected = tensors[i];
    if (found.name != expected.name || found.spec != expected.spec) {
      throw Error::input(fmt::format(
          "tensors[{}]: {} {} {}, the layout has {} {} {}", i, in_quotes(found.name),
          dtype_name(found.spec.dtype), found.spec.shape.to_string(), in_quotes(expected.name),
          dtype_name(expected.spec.dtype), expected.spec.shape.to_string()));
    }
    const Json storage = storage_to_json(found.storage);
    const Json layouts = storage_to_json(outputs[expected.output].storage);
    if (storage == layouts) continue;
    throw Error::input(fmt::format("{}: storage: {}, the layout has {}", shown(found.name),
                                   shown(storage.dump()), shown(layouts.dump())));
  }
}

}  // namespace

const Layout* layout_of(const Manifest& manifest) {
  if (manifest.layout == kLoadedLayoutId) return nullptr;
  const Layout* layout = layout_by_id(manifest.layout);
  if (layout != nullptr) return layout;
  throw Error::input(fmt::format("layout: {} is not known", in_quotes(manifest.layout)))
      .hint(kNewerProgram);
}

std::vector<Output> outputs_of(const Manifest& manifest, const ManifestLayer& layer) {
  const Layout* layout = layout_of(manifest);
  if (layout == nullptr) return loaded_outputs(layer.recipe.loaded());
  try {
    return make_outputs(*layout, {layer.recipe.loaded(), parameters_from(layer.recipe.parameters)});
  } catch (const Error& error) {
    throw Error::input(error.what());  // no conversion can have written this manifest
  }
}

void check_layout_facts(const Manifest& manifest) {
  const Layout* layout = layout_of(manifest);
  check_library(manifest, layout);
  // Most layers have one recipe: the outputs are made once for each.
  const Recipe* made = nullptr;
  std::vector<Output> outputs;
  for (const ManifestLayer& layer : manifest.layers) {
    in_context(fmt::format("layers: layer {}", layer.index), [&] {
      if (made == nullptr || *made != layer.recipe) {
        check_parameters(layer.recipe, layout, manifest.target);
        outputs = outputs_of(manifest, layer);
        made = &layer.recipe;
      }
      compare_tensors(layer, outputs);
    });
  }
}

}  // namespace mxfp4
