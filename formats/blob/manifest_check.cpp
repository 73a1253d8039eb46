#include "formats/blob/manifest_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/core/backend.hpp"
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

void check_ascending(const std::vector<int64_t>& experts, bool redundant) {
  for (size_t i = 0; i < experts.size(); ++i) {
    if (experts[i] > (i == 0 ? -1 : experts[i - 1])) continue;
    if (experts[i] == 0 && redundant) continue;  // redundant experts begin again with the first one
    throw Error::input("recipe: experts: not in ascending order");
  }
}

void check_rank(const Manifest& manifest) {
  const auto one_of = [](std::string_view what, int64_t index, int64_t count) {
    if (index >= 0 && index < count && count <= kMostRanks) return;
    throw Error::input(fmt::format("rank: {} {} of {}", what, index, count));
  };
  const RankNumbers& rank = manifest.rank;
  one_of("rank", rank.rank, rank.num_ranks);
  one_of("tp_rank", rank.tp_rank, rank.tp_size);
  one_of("ep_rank", rank.ep_rank, rank.ep_size);
  if (manifest.target.world_size > kMostRanks) {
    throw Error::input(fmt::format("target.world_size: {}, at most {} are accepted",
                                   manifest.target.world_size, kMostRanks));
  }
}

// Checks that a share of the model fits into its padded sizes.
void check_recipe(const Recipe& recipe, const Manifest& manifest) {
  if (recipe.layout != manifest.layout) {
    throw Error::input(fmt::format("recipe: layout {}, the blob's is {}", in_quotes(recipe.layout),
                                   in_quotes(manifest.layout)));
  }
  check_ascending(recipe.experts, manifest.parallel.num_redundant_experts > 0);
  if (recipe.intermediate_begin > recipe.intermediate_end) {
    throw Error::input("recipe: intermediate_begin lies behind intermediate_end");
  }
  const LayerDims padded = recipe.loaded().dims;
  const LayerDims held{recipe.num_experts(), recipe.hidden_size, recipe.intermediate_size()};
  if (held.hidden_size > padded.hidden_size || held.intermediate_size > padded.intermediate_size) {
    throw Error::input(fmt::format("recipe: H {}, I {}; the padded sizes are H {}, I {}",
                                   held.hidden_size, held.intermediate_size, padded.hidden_size,
                                   padded.intermediate_size));
  }
  // Padding has a byte, and nothing else has one.
  if (recipe.hidden_fill.has_value() != (held.hidden_size != padded.hidden_size) ||
      recipe.intermediate_fill.has_value() !=
          (held.intermediate_size != padded.intermediate_size) ||
      (recipe.w2_bias && !recipe.bias)) {
    throw Error::input("recipe: a fill or bias does not fit its sizes");
  }
  in_context("recipe", [&] {
    recipe.loaded().check();
    LoadedSpec{held, recipe.bias, recipe.input_scales}.check();
  });
}

void check_checksum(const std::string& sum) {
  if (sum.size() == 32 && sum.find_first_not_of("0123456789abcdef") == std::string::npos) return;
  throw Error::input(fmt::format("xxh3_128: {}, expected 32 hexadecimal digits", in_quotes(sum)));
}

void check_published(const PublishedLayer& published) {
  for (const PublishedRun& run : published.runs) {
    check_plain_name(run.file);
    if (run.file.ends_with(".safetensors")) continue;
    throw Error::input(in_quotes(run.file) + ": not the name of a safetensors file");
  }
  constexpr int64_t kMostTensors = int64_t{1} << 20;  // of a layer
  const int64_t count =
      checked_mul(std::max<int64_t>(published.experts, 1), std::ssize(published.tensors));
  if (count == 0 || count > kMostTensors) {
    throw Error::input("tensors: none, or too many");
  }
  for (const PublishedTensor& tensor : published.tensors) (void)tensor.spec.bytes();
}

void check_layers(const Manifest& manifest) {
  for (const ManifestLayer& layer : manifest.layers) {
    in_context(fmt::format("layers: layer {}", layer.index), [&] {
      check_plain_name(layer.file);
      check_checksum(layer.xxh3_128);
      check_recipe(layer.recipe, manifest);
      for (const ManifestTensor& tensor : layer.tensors) check_checksum(tensor.xxh3_128);
      if (layer.published) in_context("published", [&] { check_published(*layer.published); });
    });
  }
  for (const ManifestFile& file : manifest.rest) {
    in_context("rest", [&] {
      check_plain_name(file.name);
      check_checksum(file.xxh3_128);
    });
  }
}

// What belongs to one engine, and the revision that names it.
void check_engine(const Manifest& manifest) {
  if (manifest.engine != engine_of_revision(manifest.revision)) {
    throw Error::input(fmt::format("engine: {}, but the revision is {}",
                                   engine_name(manifest.engine), in_quotes(manifest.revision)));
  }
  if (!style_from_name(manifest.style)) {
    throw Error::input(fmt::format("model.style: unknown value {}", in_quotes(manifest.style)));
  }
}

// The request names the machine as the target does.
void check_machine(const Manifest& manifest) {
  const auto asked = nlohmann::json::parse(manifest.asked);
  const auto arch = asked.find("arch");
  if (arch == asked.end() || *arch == manifest.target.arch) return;
  throw Error::input(fmt::format("target.arch: {}, asked for {}", in_quotes(manifest.target.arch),
                                 shown(arch->dump())));
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
  check_engine(manifest);
  check_machine(manifest);
  check_rank(manifest);
  check_layers(manifest);
  check_layer_names(manifest);
  check_sizes(manifest);
}

}  // namespace mxfp4
