#include "formats/blob/layout_facts.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "formats/blob/written_form.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/output.hpp"
#include "lib/plan/plan.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

void require_equal(std::string_view key, std::string_view found, std::string_view expected,
                   std::string_view by) {
  if (found == expected) return;
  throw Error::input(
      fmt::format("{}: {}, expected {} by {}", key, in_quotes(found), in_quotes(expected), by));
}

// The revision determines the commit and the layout, the layout its kernel library.
void check_rules(const Manifest& manifest, const Layout* layout) {
  if (layout != nullptr) {
    require_equal("kernel_library", manifest.kernel_library, kernel_library_of(*layout),
                  manifest.layout);
  }
  const Release* release = find_release(manifest.revision);
  if (release == nullptr) return;  // of a newer program; only the layout determines the bytes
  const RuleSet& rules = rules_of(*release);
  if (rules.engine == Engine::kVllm) {
    require_equal("vllm_commit", manifest.vllm_commit, rules.commit, manifest.revision);
  }
  if (layout == nullptr) return;
  const LayoutRow* row = find_layout_row(rules, manifest.target);
  if (row == nullptr || row->layout == nullptr) {
    throw Error::input(fmt::format("layout: {}, but {} defines no layout for {}",
                                   in_quotes(manifest.layout), manifest.revision,
                                   backend_name(manifest.target.backend)));
  }
  require_equal("layout", manifest.layout, id_of(*row->layout), manifest.revision);
}

// Throws Error::input naming the first member that differs.
void compare_storage(const Storage& found, const Storage& expected) {
  const Json have = storage_to_json(found);
  const Json want = storage_to_json(expected);
  if (have == want) return;
  Json all = want;
  all.update(have);
  for (const auto& item : all.items()) {
    const std::string& key = item.key();
    const Json a = have.contains(key) ? have[key] : Json();
    const Json b = want.contains(key) ? want[key] : Json();
    if (a == b) continue;
    throw Error::input(
        fmt::format("storage.{}: {}, the layout has {}", key, shown(a.dump()), shown(b.dump())));
  }
}

void compare_tensors(const ManifestLayer& layer, const std::vector<Output>& outputs) {
  const std::vector<PlannedTensor> tensors =
      arrange_tensors(layer.prefix, outputs, layer.loaded.dims.num_experts);
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
    in_context(shown(found.name),
               [&] { compare_storage(found.storage, outputs[expected.output].storage); });
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
  if (layout == nullptr) return loaded_outputs(layer.loaded);
  try {
    return make_outputs(*layout, {layer.loaded, layout_parameters(manifest.target)});
  } catch (const Error& error) {
    throw Error::input(error.what());  // no conversion can have written this manifest
  }
}

void check_layout_facts(const Manifest& manifest) {
  check_rules(manifest, layout_of(manifest));
  // Most layers have equal sizes: the outputs are made once for each.
  using Key = std::tuple<int64_t, int64_t, int64_t, std::optional<DType>, bool>;
  std::map<Key, std::vector<Output>> made;
  for (const ManifestLayer& layer : manifest.layers) {
    const LoadedSpec& loaded = layer.loaded;
    const Key key{loaded.dims.num_experts, loaded.dims.hidden_size, loaded.dims.intermediate_size,
                  loaded.bias, loaded.input_scales};
    in_context(fmt::format("layers: layer {}", layer.index), [&] {
      auto found = made.find(key);
      if (found == made.end()) found = made.emplace(key, outputs_of(manifest, layer)).first;
      compare_tensors(layer, found->second);
    });
  }
}

}  // namespace mxfp4
