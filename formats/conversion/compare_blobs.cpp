#include "formats/conversion/compare_blobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "formats/blob/blob_check.hpp"
#include "formats/blob/plan_difference.hpp"
#include "formats/conversion/first_difference.hpp"
#include "formats/decision/recipes.hpp"
#include "formats/os/uninitialized_bytes.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kComparedBytes = int64_t{4} << 20;

struct NamedPlace {
  const char* place;  // JSON pointer
  const char* name;
};

// Of a rank's manifest: which rank it is, and what no kernel sees.
constexpr NamedPlace kRank[] = {
    {"/rank/rank", "rank"},
    {"/rank/num_ranks", "ranks"},
};
constexpr NamedPlace kNotes[] = {
    {"/revision", "revision"},
    {"/target/backend", "backend"},
    {"/target/arch", "arch"},
    {"/kernel_library", "kernel library"},
    {"/compression/method", "compression"},
    {"/source/kind", "source"},
    {"/tool_version", "program"},
};
// Of each tensor of a layer.
constexpr const char* kChecksum = "checksum";
constexpr NamedPlace kTensorFacts[] = {
    {"/name", "name"},    {"/dtype", "type"},       {"/shape", "shape"},
    {"/storage", "view"}, {"/xxh3_128", kChecksum},
};

// The first of these facts that differs.
std::optional<BlobDifference> compare_facts(const std::string& where,
                                            std::span<const NamedPlace> facts, const Json& first,
                                            const Json& second) {
  for (const NamedPlace& fact : facts) {
    std::string a = text_at(first, fact.place);
    std::string b = text_at(second, fact.place);
    if (a != b) return BlobDifference{where, fact.name, std::move(a), std::move(b)};
  }
  return std::nullopt;
}

Json layer_numbers(const Json& manifest) {
  Json numbers = Json::array();
  for (const Json& layer : manifest.at("layers")) numbers.push_back(layer.at("index"));
  return numbers;
}

// A layer file of one blob, open.
struct ComparedFile {
  ComparedFile(const BlobRanks& blob, size_t rank, size_t layer)
      : path(blob.directories[rank] / blob.manifests[rank].layers[layer].file), reader(path) {
    in_file(path.string(), [&] {
      require_layer_file(reader, blob.manifests[rank], blob.manifests[rank].layers[layer]);
    });
  }

  ConstBytes read(size_t tensor, int64_t begin, int64_t bytes) {
    buffer.resize(static_cast<size_t>(bytes));
    in_file(path.string(),
            [&] { reader.read(reader.header().tensors[tensor].begin + begin, buffer); });
    return buffer;
  }

  fs::path path;
  LayerReader reader;
  UninitializedBytes buffer;
};

std::string hex(ConstBytes bytes) {
  std::string text = "0x";
  for (size_t i = bytes.size(); i-- > 0;) {
    text += fmt::format("{:02x}", std::to_integer<unsigned>(bytes[i]));
  }
  return text;
}

// "element [3,0,17]" of a tensor stored row by row.
std::string element_text(const Shape& shape, int64_t element) {
  std::vector<int64_t> place(shape.dims().begin(), shape.dims().end());
  for (size_t i = place.size(); i-- > 0;) {
    const int64_t dim = place[i];
    place[i] = element % dim;
    element /= dim;
  }
  return "element " + Json(place).dump();
}

// The first element of a tensor that differs, if its bytes do.
std::optional<BlobDifference> compare_elements(const ManifestTensor& tensor, size_t index,
                                               ComparedFile first, ComparedFile second) {
  const int64_t size = std::max<int64_t>(dtype_bits(tensor.spec.dtype) / 8, 1);
  for (int64_t begin = 0; begin < tensor.spec.bytes(); begin += kComparedBytes) {
    const int64_t bytes = std::min(kComparedBytes, tensor.spec.bytes() - begin);
    const ConstBytes a = first.read(index, begin, bytes);
    const ConstBytes b = second.read(index, begin, bytes);
    const auto differs = first_difference(a, b);
    if (!differs) continue;
    const int64_t element = static_cast<int64_t>(*differs) / size;
    const auto at = static_cast<size_t>(element * size);
    return BlobDifference{tensor.name, element_text(tensor.spec.shape, begin / size + element),
                          hex(a.subspan(at, static_cast<size_t>(size))),
                          hex(b.subspan(at, static_cast<size_t>(size)))};
  }
  return std::nullopt;
}

// The first tensor of a layer that differs.
std::optional<BlobDifference> compare_tensors(const BlobRanks& first, const BlobRanks& second,
                                              size_t rank, size_t layer, const Json& a,
                                              const Json& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const ManifestTensor& tensor = first.manifests[rank].layers[layer].tensors[i];
    auto found = compare_facts(tensor.name, kTensorFacts, a[i], b[i]);
    if (!found) continue;
    if (found->what != kChecksum) return found;
    auto element = compare_elements(tensor, i, ComparedFile(first, rank, layer),
                                    ComparedFile(second, rank, layer));
    return element ? element : found;
  }
  return std::nullopt;
}

std::optional<BlobDifference> compare_ranks(const BlobRanks& first, const BlobRanks& second,
                                            size_t rank) {
  const Json a = manifest_to_json(first.manifests[rank]);
  const Json b = manifest_to_json(second.manifests[rank]);
  const RankSlice& slice = first.manifests[rank].rank;
  const std::string where = slice.num_ranks == 1 ? "" : fmt::format("rank {}", slice.rank);
  if (auto found = compare_facts(where, kRank, a, b)) return found;
  const Json layers = layer_numbers(a);
  const Json others = layer_numbers(b);
  if (layers != others) return BlobDifference{where, "layers", layers.dump(), others.dump()};
  for (size_t i = 0; i < layers.size(); ++i) {
    const Json& one = a["layers"][i];
    const Json& other = b["layers"][i];
    const std::string layer = fmt::format("layer {}", layers[i].dump());
    const auto recipe = recipe_difference(recipe_of(first.manifests[rank], i),
                                          recipe_of(second.manifests[rank], i));
    if (recipe) return BlobDifference{layer, recipe->what, recipe->here, recipe->there};
    auto found = compare_tensors(first, second, rank, i, one["tensors"], other["tensors"]);
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace

BlobComparison compare_blobs(const BlobRanks& first, const BlobRanks& second) {
  BlobComparison comparison;
  const Json a = manifest_to_json(first.manifests.front());
  const Json b = manifest_to_json(second.manifests.front());
  for (const NamedPlace& note : kNotes) {
    const auto found = compare_facts("", {&note, 1}, a, b);
    if (!found) continue;
    comparison.notes.push_back(fmt::format("{}: {}, {}", found->what, found->first, found->second));
  }
  const size_t ranks = first.manifests.size();
  if (ranks != second.manifests.size()) {
    comparison.difference = {"", "rank directories", fmt::to_string(ranks),
                             fmt::to_string(second.manifests.size())};
  }
  for (size_t rank = 0; rank < ranks && !comparison.difference; ++rank) {
    comparison.difference = compare_ranks(first, second, rank);
  }
  return comparison;
}

}  // namespace mxfp4
