// Manifest -> JSON text, the Hugging Face index, and the metadata of layer files.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "formats/blob/manifest.hpp"
#include "formats/blob/written_form.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/json/strict_json.hpp"
#include "lib/core/deployment_facts.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/load/loaded_style.hpp"
#include "lib/plan/frames.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they are documented

// Objects begin as such here: where null becomes one, and no memory is left, the library asserts.
Json to_json(const Shape& shape) {
  return std::vector<int64_t>(shape.dims().begin(), shape.dims().end());
}

template <class T>
void set_unless_empty(Json& json, const char* key, const T& value) {
  if (!value.empty()) json[key] = value;
}

Json to_json(const Decision& decision) {
  Json json = Json::object();
  json["backend"] = decision.backend ? Json(backend_name(*decision.backend)) : Json();
  set_unless_empty(json, "experts_class", decision.experts_class);
  json["forced"] = decision.forced;
  Json& trace = json["trace"] = Json::array();
  for (const TraceStep& step : decision.trace) {
    trace.push_back({step.candidate, step.key ? Json(*step.key) : Json(), step.supported,
                     step.supported ? Json() : Json(step.reason)});
  }
  json["notes"] = decision.notes;
  return json;
}

Json to_json(const Target& target) {
  Json json = Json::object();
  json["backend"] = backend_name(target.backend);
  json["family"] = family_name(target.family);
  json["platform"] = platform_name(target.platform);
  json["arch"] = target.arch;
  json["world_size"] = target.world_size;
  set_unless_empty(json, "activation", target.activation);
  json["knobs"] = target.knobs;
  json["env"] = target.env;
  return json;
}

Json to_json(const ParallelConfig& parallel) {
  Json json = Json::object();
  for_each_fact_of<ParallelConfig>([&](const FactRow& row, auto members) {
    const auto& value = parallel.*members.known;
    if (row.absent_if_zero && value == std::remove_cvref_t<decltype(value)>()) return;
    json[row.manifest_key()] = value;
  });
  return json;
}

Json to_json(const RankSlice& rank) {
  Json json = Json::object();
  json["rank"] = rank.rank;
  json["num_ranks"] = rank.num_ranks;
  json["tp_rank"] = rank.tp_rank;
  json["tp_size"] = rank.tp_size;
  json["ep_rank"] = rank.ep_rank;
  json["ep_size"] = rank.ep_size;
  json["experts"] = rank.experts;
  json["intermediate_range"] = {rank.begin, rank.end};
  json["w2_bias"] = rank.w2_bias;
  return json;
}

Json sizes_to_json(const ManifestLayer& layer, const RankSlice& rank) {
  const LoadedSpec& loaded = layer.loaded;
  Json json = Json::object();
  json["num_experts"] = loaded.dims.num_experts;
  json["hidden_size"] = layer.hidden_size;
  json["intermediate_size"] = rank.end - rank.begin;
  json["padded_hidden_size"] = loaded.dims.hidden_size;
  json["padded_intermediate_size"] = loaded.dims.intermediate_size;
  json["bias"] = loaded.bias ? Json(dtype_name(*loaded.bias)) : Json();
  json["input_scales"] = loaded.input_scales;
  return json;
}

Json to_json(const PublishedLayer& published) {
  Json json = Json::object();
  json["intermediate_size"] = published.intermediate_size;
  json["experts"] = published.experts;
  Json& tensors = json["tensors"] = Json::array();
  for (const PublishedTensor& each : published.tensors) {
    tensors.push_back({{"name", each.tail},
                       {"dtype", dtype_name(each.spec.dtype)},
                       {"shape", to_json(each.spec.shape)}});
  }
  Json& files = json["files"] = Json::array();
  for (const PublishedRun& run : published.runs) {
    files.push_back({{"file", run.file}, {"tensors", run.tensors}});
  }
  set_unless_empty(json, "sample", published.sample);
  return json;
}

Json to_json(const CheckpointFacts& checkpoint) {
  Json json = Json::object();
  if (checkpoint.config) json["config"] = *checkpoint.config;
  set_unless_empty(json, "attributes", checkpoint.attributes);
  set_unless_empty(json, "left_out", checkpoint.left_out);
  return json;
}

Json to_json(const ManifestLayer& layer, const RankSlice& rank) {
  Json json = Json::object();
  json["index"] = layer.index;
  json["prefix"] = layer.prefix;
  set_unless_empty(json, "engine_prefix", layer.engine_prefix);
  json["file"] = layer.file;
  json["size"] = layer.size;
  json["xxh3_128"] = layer.xxh3_128;
  if (layer.experts) json["experts"] = *layer.experts;
  json["sizes"] = sizes_to_json(layer, rank);
  Json& tensors = json["tensors"] = Json::array();
  for (const ManifestTensor& tensor : layer.tensors) {
    Json item = Json::object();
    item["name"] = tensor.name;
    item["dtype"] = dtype_name(tensor.spec.dtype);
    item["shape"] = to_json(tensor.spec.shape);
    item["xxh3_128"] = tensor.xxh3_128;
    item["storage"] = storage_to_json(tensor.storage);
    tensors.push_back(std::move(item));
  }
  if (layer.published) json["published"] = to_json(*layer.published);
  return json;
}

std::map<std::string, std::string> common_metadata(const Manifest& manifest) {
  return {
      {"format", "pt"},
      {"family", std::string(family_name(manifest.target.family))},
      {"w13_order", std::string(w13_order_name(manifest.order))},
  };
}

Json model_to_json(const Manifest& manifest) {
  Json json = Json::object();
  json["style"] = manifest.style;
  json["loader"] = loader_name(manifest.loader);
  json["w13_order"] = w13_order_name(manifest.order);
  json["scale_fill"] = std::to_integer<int>(manifest.scale_fill);
  if (manifest.hidden_scale_fill) {
    json["hidden_scale_fill"] = std::to_integer<int>(*manifest.hidden_scale_fill);
  }
  json["bias_dtype"] = dtype_name(manifest.bias_dtype);
  json["all_layers"] = manifest.all_layers;
  return json;
}

}  // namespace

Json storage_to_json(const Storage& storage) {
  Json json = Json::object();
  set_unless_empty(json, "torch_dtype", storage.torch_dtype);
  set_unless_empty(json, "layout", storage.layout);
  set_unless_empty(json, "layout_name", storage.layout_name);
  if (!storage.layout.empty()) {
    Json& kwargs = json["layout_kwargs"] = Json::object();
    // Sorted by name, as reading a manifest sorts them.
    const std::map<std::string, int64_t> by_name(storage.layout_kwargs.begin(),
                                                 storage.layout_kwargs.end());
    for (const auto& [name, value] : by_name) kwargs[name] = value;
  }
  set_unless_empty(json, "layout_init_shape", storage.layout_init_shape);
  set_unless_empty(json, "storage_shape", storage.storage_shape);
  set_unless_empty(json, "storage_strides", storage.storage_strides);
  set_unless_empty(json, "logical_shape", storage.logical_shape);
  set_unless_empty(json, "logical_dtype", storage.logical_dtype);
  if (storage.slack_bytes != 0) json["slack_bytes"] = storage.slack_bytes;
  set_unless_empty(json, "flags", storage.flags);
  return json;
}

std::filesystem::path rank_directory(const RankSlice& rank) {
  if (rank.num_ranks == 1) return ".";
  return fmt::format("rank-{:02}-of-{:02}", rank.rank, rank.num_ranks);
}

std::string name_in_blob(const RankSlice& rank, const std::string& file) {
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

void check_text(const Manifest& manifest) {
  const auto file_name = [](const std::string& name) {
    in_context(shown(name), [&] { check_json_text(name); });
  };
  for (const SourceFile& file : manifest.source.files) file_name(file.name);
  for (const ManifestFile& file : manifest.rest) file_name(file.name);
  if (manifest.checkpoint.config) {
    in_context("config.json", [&] { check_json_text(*manifest.checkpoint.config); });
  }
  const auto flag = [](std::string_view what, const std::string& value) {
    try {
      check_json_text(value);
    } catch (const Error& error) {
      throw Error::usage(fmt::format("{}: {}: {}", what, in_quotes(value), error.what()));
    }
  };
  const Target& target = manifest.target;
  flag("--arch", target.arch);
  flag("--activation", target.activation);
  for_each_fact_of<ParallelConfig>(
      [&]<class Value, class Owner>(const FactRow& row, FactMembers<Value, Owner> members) {
        if constexpr (std::is_same_v<Value, std::string>) {
          flag(row.flag, manifest.parallel.*members.known);
        }
      });
  for (const auto* pairs : {&target.knobs, &target.env}) {
    for (const auto& [name, value] : *pairs) {
      flag(pairs == &target.env ? "--env" : "--knob", name);
      flag(pairs == &target.env ? "--env" : "--knob", value);
    }
  }
}

std::string seal_json(const Json& json) {
  std::string text = json.dump(2);
  text.resize(text.rfind("\n}"));
  return fmt::format("{}{}{}\"\n}}\n", text, kManifestSeal, checksum_of(text));
}

std::string write_manifest(const Manifest& manifest) {
  return seal_json(manifest_to_json(manifest));
}

Json manifest_to_json(const Manifest& manifest) {
  Json json = Json::object();
  json["format"] = "mxfp4-repack";
  json["format_version"] = kFormatVersion;
  json["tool_version"] = manifest.tool_version;
  json["revision"] = manifest.revision;
  if (manifest.engine == Engine::kVllm) {
    json["vllm_commit"] = manifest.vllm_commit;
  } else {
    json["engine"] = engine_name(manifest.engine);
    json["parameter_names"] = manifest.parameter_names;
  }
  json["layout"] = manifest.layout;
  set_unless_empty(json, "kernel_library", manifest.kernel_library);
  if (!manifest.also_serves.empty()) json["also_serves"] = manifest.also_serves;
  json["decision"] = to_json(manifest.decision);
  if (manifest.asked != "{}") json["asked"] = nlohmann::json::parse(manifest.asked);
  json["target"] = to_json(manifest.target);
  json["deployment"] = to_json(manifest.parallel);
  json["rank"] = to_json(manifest.rank);
  json["model"] = model_to_json(manifest);
  Json& layers = json["layers"] = Json::array();
  for (const ManifestLayer& layer : manifest.layers) {
    layers.push_back(to_json(layer, manifest.rank));
  }
  if (!manifest.rest.empty()) json["rest"] = Json::array();
  for (const ManifestFile& file : manifest.rest) {
    json["rest"].push_back({{"file", file.name}, {"size", file.size}, {"xxh3_128", file.xxh3_128}});
  }
  if (manifest.checkpoint != CheckpointFacts{}) json["checkpoint"] = to_json(manifest.checkpoint);
  Json& source = json["source"] = Json::object();
  source["kind"] = manifest.source.kind;
  if (!manifest.source.model_type.empty()) source["model_type"] = manifest.source.model_type;
  if (!manifest.source.activation.empty()) source["activation"] = manifest.source.activation;
  Json& files = source["files"] = Json::array();
  for (const SourceFile& file : manifest.source.files) {
    files.push_back({{"name", file.name}, {"size", file.size}});
    set_unless_empty(files.back(), "sha256", file.sha256);
  }
  Json& compression = json["compression"] = Json::object();
  compression["method"] = manifest.compression.zstd ? "zstd" : "none";
  if (manifest.compression.zstd) {
    compression["level"] = manifest.compression.level;
    compression["frame_bytes"] = kFrameBytes;
    compression["libzstd"] = manifest.libzstd;
  }
  json["warnings"] = manifest.warnings;
  return json;
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
  std::map<std::string, std::string> metadata = common_metadata(manifest);
  metadata["hidden_size"] = fmt::format("{}", layer.hidden_size);
  metadata["intermediate_size"] = fmt::format("{}", manifest.rank.end - manifest.rank.begin);
  // Mark a slice, so that it is not sliced again.
  if (manifest.rank.tp_size > 1) metadata["tp_size"] = fmt::format("{}", manifest.rank.tp_size);
  if (manifest.rank.ep_size > 1) metadata["ep_size"] = fmt::format("{}", manifest.rank.ep_size);
  if (manifest.scale_fill != std::byte{0}) {
    metadata["scale_fill"] = fmt::format("{}", std::to_integer<int>(manifest.scale_fill));
  }
  if (layer.loaded.bias) metadata["bias_dtype"] = dtype_name(*layer.loaded.bias);
  return metadata;
}

std::map<std::string, std::string> layer_metadata(const Manifest& manifest,
                                                  const ManifestLayer& layer) {
  // Only packed layers carry the mark by which an input is refused.
  if (manifest.layout == kLoadedLayoutId) return loaded_metadata(manifest, layer);
  std::map<std::string, std::string> metadata = common_metadata(manifest);
  Json storage = Json::object();
  for (const ManifestTensor& tensor : layer.tensors)
    storage[tensor.name] = storage_to_json(tensor.storage);
  metadata["mxfp4_repack.format_version"] = fmt::format("{}", kFormatVersion);
  metadata["mxfp4_repack.revision"] = manifest.revision;
  metadata[kPackedMark] = manifest.layout;
  metadata["mxfp4_repack.target"] = to_json(manifest.target).dump();
  metadata["mxfp4_repack.rank"] = to_json(manifest.rank).dump();
  metadata["mxfp4_repack.sizes"] = sizes_to_json(layer, manifest.rank).dump();
  metadata["mxfp4_repack.storage"] = storage.dump();
  if (!manifest.kernel_library.empty()) {
    metadata["mxfp4_repack.kernel_library"] = manifest.kernel_library;
  }
  return metadata;
}

}  // namespace mxfp4
