#include "formats/conversion/compare_blobs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "formats/blob/blob_check.hpp"
#include "formats/conversion/first_difference.hpp"
#include "formats/os/uninitialized_bytes.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kComparedBytes = int64_t{4} << 20;

std::vector<int64_t> layer_numbers(const Manifest& manifest) {
  std::vector<int64_t> numbers;
  for (const ManifestLayer& layer : manifest.layers) numbers.push_back(layer.index);
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
  return fmt::format("element [{}]", fmt::join(place, ","));
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

// The first tensor of a layer that differs. Equal recipes have equal tensors, names and bytes aside.
std::optional<BlobDifference> compare_tensors(const BlobRanks& first, const BlobRanks& second,
                                              size_t rank, size_t layer) {
  const std::vector<ManifestTensor>& tensors = first.manifests[rank].layers[layer].tensors;
  const std::vector<ManifestTensor>& others = second.manifests[rank].layers[layer].tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ManifestTensor& a = tensors[i];
    const ManifestTensor& b = others[i];
    if (a.name != b.name) return BlobDifference{a.name, "name", a.name, b.name};
    if (a.xxh3_128 == b.xxh3_128) continue;
    auto element =
        compare_elements(a, i, ComparedFile(first, rank, layer), ComparedFile(second, rank, layer));
    return element ? element : BlobDifference{a.name, "checksum", a.xxh3_128, b.xxh3_128};
  }
  return std::nullopt;
}

std::optional<BlobDifference> compare_ranks(const BlobRanks& first, const BlobRanks& second,
                                            size_t rank) {
  const Manifest& a = first.manifests[rank];
  const Manifest& b = second.manifests[rank];
  const std::string where = a.rank.num_ranks == 1 ? "" : fmt::format("rank {}", a.rank.rank);
  const auto number = [&](const char* what, int64_t one, int64_t other) {
    return BlobDifference{where, what, fmt::to_string(one), fmt::to_string(other)};
  };
  if (a.rank.rank != b.rank.rank) return number("rank", a.rank.rank, b.rank.rank);
  if (a.rank.num_ranks != b.rank.num_ranks) {
    return number("ranks", a.rank.num_ranks, b.rank.num_ranks);
  }
  if (layer_numbers(a) != layer_numbers(b)) {
    return BlobDifference{where, "layers", fmt::format("[{}]", fmt::join(layer_numbers(a), ",")),
                          fmt::format("[{}]", fmt::join(layer_numbers(b), ","))};
  }
  for (size_t i = 0; i < a.layers.size(); ++i) {
    const auto recipe = recipe_difference(a.layers[i].recipe, b.layers[i].recipe);
    if (recipe) {
      return BlobDifference{fmt::format("layer {}", a.layers[i].index), recipe->what, recipe->here,
                            recipe->there};
    }
    if (auto found = compare_tensors(first, second, rank, i)) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<BlobDifference> compare_blobs(const BlobRanks& first, const BlobRanks& second) {
  const size_t ranks = first.manifests.size();
  if (ranks != second.manifests.size()) {
    return BlobDifference{"", "rank directories", fmt::to_string(ranks),
                          fmt::to_string(second.manifests.size())};
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (auto found = compare_ranks(first, second, rank)) return found;
  }
  return std::nullopt;
}

}  // namespace mxfp4
