#include "formats/blob/manifest_check.hpp"

#include <fmt/format.h>

#include <set>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

// Names of files and tensors repeat facts of their layer, and must agree with them.
void check_layer_names(const Manifest& manifest) {
  std::set<int64_t> seen;
  std::set<std::string_view> prefixes;
  for (const ManifestLayer& layer : manifest.layers) {
    if (!seen.insert(layer.index).second || !prefixes.insert(layer.prefix).second) {
      throw Error::input(fmt::format("layers: layer {} is there twice", layer.index));
    }
    for (const ManifestTensor& tensor : layer.tensors) {
      if (tensor.name.starts_with(layer.prefix + ".")) continue;
      throw Error::input(fmt::format("layers: layer {}: tensor {} does not begin with {}",
                                     layer.index, in_quotes(tensor.name), in_quotes(layer.prefix)));
    }
    const std::string expected = layer_file_name(layer.index, manifest.compression.zstd);
    if (layer.file == expected) continue;
    throw Error::input(fmt::format("layers: layer {} is in {}, expected {}", layer.index,
                                   in_quotes(layer.file), expected));
  }
}

void check_ascending(const std::vector<int64_t>& experts, bool redundant,
                     const std::string& where) {
  for (size_t i = 0; i < experts.size(); ++i) {
    if (experts[i] > (i == 0 ? -1 : experts[i - 1])) continue;
    if (experts[i] == 0 && redundant) continue;  // redundant experts begin again with the first one
    throw Error::input(where + ": experts: not in ascending order");
  }
}

// Checks that a rank's numbers are below their counts, and that its share of the model fits into
// the padded sizes of its layers.
void check_rank_share(const Manifest& manifest) {
  const RankSlice& rank = manifest.rank;
  const auto one_of = [](std::string_view what, int64_t index, int64_t count) {
    if (index >= 0 && index < count) return;
    throw Error::input(fmt::format("rank: {} {} of {}", what, index, count));
  };
  one_of("rank", rank.rank, rank.num_ranks);
  one_of("tp_rank", rank.tp_rank, rank.tp_size);
  one_of("ep_rank", rank.ep_rank, rank.ep_size);
  const bool redundant = manifest.parallel.num_redundant_experts > 0;
  check_ascending(rank.experts, redundant, "rank");
  if (rank.begin < 0) throw Error::input("rank: intermediate_range: negative");
  for (const ManifestLayer& layer : manifest.layers) {
    const LayerDims& padded = layer.loaded.dims;
    if (layer.experts) {
      check_ascending(*layer.experts, redundant, fmt::format("layers: layer {}", layer.index));
    }
    const LayerDims held{std::ssize(layer.experts.value_or(rank.experts)), layer.hidden_size,
                         rank.end - rank.begin};
    const bool fits = held.num_experts == padded.num_experts &&
                      held.hidden_size <= padded.hidden_size &&
                      held.intermediate_size <= padded.intermediate_size;
    if (!fits) {
      throw Error::input(
          fmt::format("layers: layer {}: E {}, H {}, I {}; the padded sizes are E {}, H {}, I {}",
                      layer.index, held.num_experts, held.hidden_size, held.intermediate_size,
                      padded.num_experts, padded.hidden_size, padded.intermediate_size));
    }
    if (layer.loaded.bias && layer.loaded.bias != manifest.bias_dtype) {
      throw Error::input(fmt::format("layers: layer {}: biases are {}, the model's are {}",
                                     layer.index, dtype_name(*layer.loaded.bias),
                                     dtype_name(manifest.bias_dtype)));
    }
    in_context(fmt::format("layers: layer {}", layer.index), [&] {
      LoadedSpec{held, layer.loaded.bias, layer.loaded.input_scales}.check();
    });
  }
}

// The program adds up sizes of a manifest and shows the sums, so they must not overflow.
void check_sizes(const Manifest& manifest) {
  constexpr int64_t kMost = int64_t{1} << 53;  // every reader of JSON is exact up to this
  int64_t total = 0;
  for (const ManifestLayer& layer : manifest.layers) {
    total = checked_add(total, layer.size);
    for (const ManifestTensor& tensor : layer.tensors) {
      total = checked_add(total, tensor.spec.bytes());
    }
  }
  for (const ManifestFile& file : manifest.rest) total = checked_add(total, file.size);
  if (total > kMost) throw Error::input("layers: their sizes add up to more than 2^53 bytes");
}

}  // namespace

void check_manifest(const Manifest& manifest) {
  check_layer_names(manifest);
  check_rank_share(manifest);
  check_sizes(manifest);
}

}  // namespace mxfp4
