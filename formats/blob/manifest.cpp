// Names of a blob's files, the Hugging Face index, and the headers of layer files.
#include "formats/blob/manifest.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "formats/json/strict_json.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/load/loaded_style.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

std::map<std::string, std::string> common_metadata(const Manifest& manifest, const Recipe& recipe) {
  return {
      {"format", "pt"},
      {"family", std::string(family_name(manifest.target.family))},
      {"w13_order", std::string(w13_order_name(recipe.order))},
  };
}

}  // namespace

std::filesystem::path rank_directory(const RankNumbers& rank) {
  if (rank.num_ranks == 1) return ".";
  return fmt::format("rank-{:02}-of-{:02}", rank.rank, rank.num_ranks);
}

std::string name_in_blob(const RankNumbers& rank, const std::string& file) {
  return (rank_directory(rank) / file).lexically_normal().string();
}

int64_t stored_bytes(const std::vector<Manifest>& manifests) {
  int64_t total = 0;
  for (const Manifest& manifest : manifests) {
    for (const ManifestLayer& layer : manifest.layers) total += layer.size;
  }
  return total;
}

std::string layer_file_name(int64_t index, bool zstd) {
  return fmt::format("layer-{:05}.safetensors{}", index, zstd ? ".zst" : "");
}

bool is_layer_file_name(std::string_view name) {
  constexpr std::string_view kBegin = "layer-";
  if (!name.starts_with(kBegin)) return false;
  const std::string_view rest = name.substr(kBegin.size());
  const size_t digits = rest.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return false;
  const std::string_view end = rest.substr(digits);
  return end == ".safetensors" || end == ".safetensors.zst";
}

void check_plain_name(const std::string& name) {
  if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos) {
    throw Error::input("expected a plain file name");
  }
}

void check_text(const Manifest& manifest) {
  // `flag` empty: from a file.
  const auto check = [](std::string_view flag, const std::string& text) {
    try {
      check_json_text(text);
    } catch (const Error& error) {
      if (flag.empty()) throw Error::input(fmt::format("{}: {}", shown(text), error.what()));
      throw Error::usage(fmt::format("{}: {}: {}", flag, in_quotes(text), error.what()));
    }
  };
  for (const SourceFile& file : manifest.source.files) check("", file.name);
  for (const ManifestFile& file : manifest.rest) check("", file.name);
  const Target& target = manifest.target;
  check("--arch", target.arch);
  check("--activation", target.activation);
  check("--all2all-backend", manifest.parallel.all2all_backend);
  for (const auto* pairs : {&target.knobs, &target.env}) {
    const char* flag = pairs == &target.env ? "--env" : "--knob";
    for (const auto& [name, value] : *pairs) {
      check(flag, name);
      check(flag, value);
    }
  }
}

std::string write_index(const Manifest& manifest) {
  nlohmann::json map = nlohmann::json::object();  // sorted by name, as the hub's are
  int64_t total = 0;
  for (const ManifestLayer& layer : manifest.layers) {
    for (const ManifestTensor& tensor : layer.tensors) {
      map[tensor.name] = layer.file;
      total += tensor.spec.bytes();
    }
  }
  Json json = Json::object();
  json["metadata"] = {{"total_size", total}};
  json["weight_map"] = map;
  return json.dump(2) + "\n";
}

std::map<std::string, std::string> loaded_metadata(const Manifest& manifest,
                                                   const ManifestLayer& layer) {
  const Recipe& recipe = layer.recipe;
  std::map<std::string, std::string> metadata = common_metadata(manifest, recipe);
  metadata["hidden_size"] = fmt::format("{}", recipe.hidden_size);
  metadata["intermediate_size"] = fmt::format("{}", recipe.intermediate_size());
  // Mark a slice, so that it is not sliced again.
  if (manifest.rank.tp_size > 1) metadata["tp_size"] = fmt::format("{}", manifest.rank.tp_size);
  if (manifest.rank.ep_size > 1) metadata["ep_size"] = fmt::format("{}", manifest.rank.ep_size);
  if (manifest.scale_fill != std::byte{0}) {
    metadata["scale_fill"] = fmt::format("{}", std::to_integer<int>(manifest.scale_fill));
  }
  if (recipe.bias) metadata["bias_dtype"] = dtype_name(*recipe.bias);
  return metadata;
}

std::map<std::string, std::string> layer_metadata(const Manifest& manifest,
                                                  const ManifestLayer& layer) {
  // Only packed layers carry the mark by which an input is refused.
  if (manifest.layout == kLoadedLayoutId) return loaded_metadata(manifest, layer);
  std::map<std::string, std::string> metadata = common_metadata(manifest, layer.recipe);
  Json storage = Json::object();
  for (const ManifestTensor& tensor : layer.tensors) {
    storage[tensor.name] = storage_to_json(tensor.storage);
  }
  metadata["mxfp4_repack.format_version"] = fmt::format("{}", kFormatVersion);
  metadata["mxfp4_repack.revision"] = manifest.revision;
  metadata[kPackedMark] = manifest.layout;
  metadata["mxfp4_repack.recipe"] = recipe_to_json(layer.recipe).dump();
  metadata["mxfp4_repack.storage"] = storage.dump();
  if (!manifest.kernel_library.empty()) {
    metadata["mxfp4_repack.kernel_library"] = manifest.kernel_library;
  }
  return metadata;
}

std::string layer_header(const Manifest& manifest, const ManifestLayer& layer) {
  std::vector<SafetensorsTensor> tensors;
  for (const ManifestTensor& tensor : layer.tensors) {
    append_tensor(tensors, tensor.name, tensor.spec);
  }
  return make_safetensors_header(tensors, layer_metadata(manifest, layer), kSafetensorsAlignment);
}

}  // namespace mxfp4
