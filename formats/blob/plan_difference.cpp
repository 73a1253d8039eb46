#include "formats/blob/plan_difference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "formats/blob/planned.hpp"
#include "lib/core/deployment_facts.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
  const char* place;  // JSON pointer in a manifest
  const char* name;   // the flag or fact that decides it
};

// What is compared behind the facts of the deployment. Causes come before their consequences.
constexpr std::array<Row, 9> kRows = {{
    {"/target/family", "--family"},
    {"/target/knobs", "--knob"},
    {"/target/backend", "backend"},
    {"/model/style", "--style"},
    {"/layout", "layout"},
    {"/compression/method", "--compress"},
    {"/compression/level", "--level"},
    {"/compression/libzstd", "zstd"},
    {"/tool_version", "mxfp4-repack"},
}};

std::string layers_of(const Manifest& manifest) {
  std::vector<int64_t> numbers;
  for (const ManifestLayer& layer : manifest.layers) numbers.push_back(layer.index);
  return fmt::format("{}", fmt::join(numbers, ","));
}

// The member at `place`, a JSON pointer, as people read it; "none" if there is none.
std::string member_text(const Json& json, std::string_view place) {
  const Json::json_pointer pointer{std::string(place)};
  if (!json.contains(pointer) || json.at(pointer).is_null()) return "none";
  const Json& value = json.at(pointer);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Calls compare(then, now) for each layer that both have; false once it is.
template <class Compare>
bool same_layers(const Manifest& then, const Manifest& now, const Compare& compare) {
  return std::ranges::all_of(then.layers, [&](const ManifestLayer& old) {
    const auto planned = std::ranges::find(now.layers, old.index, &ManifestLayer::index);
    return planned == now.layers.end() || compare(old, *planned);
  });
}

}  // namespace

std::vector<std::string> differing_flags(const Manifest& then, const Manifest& now) {
  const Json old = manifest_to_json(without_data(then));
  const Json planned = manifest_to_json(without_data(now));
  std::vector<std::string> differences;
  const auto compare = [&](std::string_view name, const std::string& before,
                           const std::string& after) {
    if (before != after) differences.push_back(fmt::format("{}: {}, now {}", name, before, after));
  };
  if (old == planned) return {};
  for (const FactRow& row : deployment_facts()) {
    if (row.manifest.empty()) continue;
    compare(row.flag, member_text(old, row.manifest), member_text(planned, row.manifest));
  }
  for (const Row& row : kRows) {
    compare(row.name, member_text(old, row.place), member_text(planned, row.place));
  }
  compare("--layers", layers_of(then), layers_of(now));
  compare("--include-rest", then.rest.empty() ? "not given" : "given",
          now.rest.empty() ? "not given" : "given");
  if (old.at("source") != planned.at("source")) differences.emplace_back("the input's files");
  if (!same_layers(then, now, [](const ManifestLayer& a, const ManifestLayer& b) {
        return a.published == b.published;
      })) {
    differences.emplace_back("the input's experts");
  }
  if (old.at("rank") != planned.at("rank")) differences.emplace_back("the ranks");
  if (!differences.empty()) return differences;
  (void)same_layers(then, now, [&](const ManifestLayer& a, const ManifestLayer& b) {
    const auto other = recipe_difference(a.recipe, b.recipe);
    if (other) compare(other->what, other->here, other->there);
    return !other;
  });
  if (differences.empty()) differences.emplace_back("other facts of the deployment or the input");
  return differences;
}

}  // namespace mxfp4
