#include "formats/blob/shard_manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "formats/blob/layout_facts.hpp"
#include "formats/blob/written_form.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/json/json_fields.hpp"
#include "formats/json/strict_json.hpp"
#include "formats/os/directory.hpp"
#include "formats/os/file.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kShardFormat = "mxfp4-repack-shard";
constexpr std::string_view kPrefix = "mxfp4_repack.shard-";
constexpr int64_t kMaxShardManifestBytes = int64_t{256} << 20;

std::string named(const Shard& shard) {
  return fmt::format("shard {}/{}", shard.index, shard.count);
}

// `shards` are sorted by index.
void check_complete(const std::vector<ShardManifest>& shards) {
  const ShardManifest& first = shards.front();
  for (const ShardManifest& shard : shards) {
    if (shard.shard.count != first.shard.count) {
      throw Error::input(fmt::format("{} and {}: cut in different numbers of shards",
                                     named(first.shard), named(shard.shard)));
    }
    if (shard.plan != first.plan || shard.layers != first.layers ||
        shard.ranks.size() != first.ranks.size()) {
      throw Error::input(fmt::format("{} and {}: made from different plans", named(first.shard),
                                     named(shard.shard)))
          .hint("all shards need the same input, flags and program");
    }
    for (const ShardManifest& other : shards) {
      if (!shard.source.contradicts(other.source)) continue;
      throw Error::input(fmt::format("{} and {}: the input changed in between", named(shard.shard),
                                     named(other.shard)))
          .hint("run the older one again, with --force");
    }
  }
  const auto same_index = [](const ShardManifest& a, const ShardManifest& b) {
    return a.shard.index == b.shard.index;
  };
  if (std::ranges::adjacent_find(shards, same_index) != shards.end()) {
    throw Error::input("a shard is there twice");
  }
  std::vector<int64_t> missing;
  size_t at = 0;
  constexpr size_t kNamed = 8;
  for (int64_t index = 0; index < first.shard.count && missing.size() <= kNamed; ++index) {
    if (at < shards.size() && shards[at].shard.index == index) {
      ++at;
    } else {
      missing.push_back(index);
    }
  }
  if (!missing.empty()) {
    const bool more = missing.size() > kNamed;
    if (more) missing.pop_back();
    throw Error::input(fmt::format("{} of {} shards are complete, missing: {}{}", shards.size(),
                                   first.shard.count, fmt::join(missing, ", "),
                                   more ? ", ..." : ""))
        .hint("run convert --shard for those, with --resume");
  }
}

// Throws for a fact of a rank that two shards give differently. Layers, the files that
// shard 0 copies and the warnings about data are each shard's own.
void check_same_facts(const std::vector<ShardManifest>& shards) {
  const auto facts = [](Manifest manifest) {
    manifest.layers.clear();
    manifest.rest.clear();
    manifest.warnings.clear();
    return manifest_to_json(manifest);
  };
  const ShardManifest& first = shards.front();
  for (size_t rank = 0; rank < first.ranks.size(); ++rank) {
    const auto expected = facts(first.ranks[rank]);
    for (const ShardManifest& shard : std::span(shards).subspan(1)) {
      const auto found = facts(shard.ranks[rank]);
      for (const auto& [key, value] : expected.items()) {
        if (found.contains(key) && found.at(key) == value) continue;
        throw Error::input(
            fmt::format("{} and {}: {}: not the same", named(first.shard), named(shard.shard), key))
            .hint("all shards need the same input, flags and program");
      }
    }
  }
}

void sort_layers(Manifest& manifest, const std::vector<int64_t>& expected) {
  std::ranges::sort(manifest.layers, {}, &ManifestLayer::index);
  std::vector<int64_t> layers;
  for (const ManifestLayer& layer : manifest.layers) layers.push_back(layer.index);
  if (layers == expected) return;
  throw Error::input(fmt::format("rank {}: the shards hold {} layers, the plan has {}",
                                 manifest.rank.rank, layers.size(), expected.size()));
}

}  // namespace

std::string shard_manifest_name(const Shard& shard) {
  return fmt::format("{}{:03}-of-{:03}.json", kPrefix, shard.index, shard.count);
}

bool is_shard_manifest(std::string_view file_name) {
  return file_name.starts_with(kPrefix) && file_name.ends_with(".json");
}

std::string write_shard_manifest(const ShardManifest& manifest) {
  auto json = nlohmann::ordered_json::object();
  json["format"] = kShardFormat;
  json["format_version"] = kFormatVersion;
  json["shard"] = manifest.shard.index;
  json["shards"] = manifest.shard.count;
  json["plan"] = manifest.plan;
  json["source_seen"] = {{"machine", manifest.source.machine},
                         {"place", manifest.source.place},
                         {"stamp", manifest.source.stamp}};
  json["layers"] = manifest.layers;
  json["data_warnings"] = manifest.warnings;
  json["ranks"] = nlohmann::ordered_json::array();
  for (const Manifest& rank : manifest.ranks) json["ranks"].push_back(manifest_to_json(rank));
  return seal_json(json);
}

ShardManifest parse_shard_manifest(std::string_view text) {
  check_seal(text);
  const nlohmann::json json = parse_strict_json(text);
  const JsonFields object(json);
  if (object.string("format") != kShardFormat) {
    throw Error::input(fmt::format("format: expected '{}'", kShardFormat));
  }
  if (object.integer("format_version") != kFormatVersion) {
    throw Error::input(
        fmt::format("format_version: {} is not known to this program, which knows {}",
                    object.integer("format_version"), kFormatVersion));
  }
  ShardManifest manifest;
  manifest.shard = {object.integer("shard"), object.integer("shards")};
  if (manifest.shard.index >= manifest.shard.count) {
    throw Error::input(fmt::format("shard: {} of {}", manifest.shard.index, manifest.shard.count));
  }
  manifest.plan = object.string("plan");
  const JsonFields seen = object.object("source_seen");
  manifest.source = {seen.string("machine"), seen.string("place"), seen.string("stamp")};
  manifest.layers = object.integers("layers");
  for (const std::string& warning : object.strings("data_warnings")) {
    manifest.warnings.insert(warning);
  }
  object.each("ranks",
              [&](const JsonFields& item) { manifest.ranks.push_back(manifest_from_json(item)); });
  if (manifest.ranks.empty()) throw Error::input("ranks: empty");
  check_written_form(text, write_shard_manifest(manifest));
  return manifest;
}

std::vector<fs::path> find_shard_manifests(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : list_directory(directory, ignored)) {
    if (is_shard_manifest(entry.path().filename().string())) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

ShardManifest read_shard_manifest(const fs::path& path) {
  return in_file(path.string(), [&] {
    ShardManifest manifest = parse_shard_manifest(read_text_file(path, kMaxShardManifestBytes));
    for (const Manifest& rank : manifest.ranks) check_layout_facts(rank);
    return manifest;
  });
}

std::vector<Manifest> merge_shards(std::vector<ShardManifest> shards) {
  if (shards.empty()) throw Error::input("no shard is complete");
  std::ranges::sort(shards, {}, [](const ShardManifest& shard) { return shard.shard.index; });
  check_complete(shards);
  check_same_facts(shards);
  std::vector<Manifest> manifests = shards.front().ranks;
  std::set<std::string> warnings;
  for (const ShardManifest& shard : shards) {
    warnings.insert(shard.warnings.begin(), shard.warnings.end());
  }
  for (size_t rank = 0; rank < manifests.size(); ++rank) {
    Manifest& manifest = manifests[rank];
    for (const ShardManifest& shard : std::span(shards).subspan(1)) {
      const std::vector<ManifestLayer>& layers = shard.ranks[rank].layers;
      manifest.layers.insert(manifest.layers.end(), layers.begin(), layers.end());
    }
    sort_layers(manifest, shards.front().layers);
    manifest.warnings.insert(manifest.warnings.end(), warnings.begin(), warnings.end());
  }
  if (plan_identity(manifests) != shards.front().plan) {
    throw Error::input("the shards' records do not have the facts of their plan")
        .hint("a record was changed: run the shards again, with --force");
  }
  return manifests;
}

Manifest without_data(Manifest manifest) {
  manifest.warnings.clear();
  for (ManifestFile& file : manifest.rest) {
    file.size = 0;
    file.xxh3_128.clear();
  }
  for (ManifestLayer& layer : manifest.layers) {
    layer.size = 0;
    layer.xxh3_128.clear();
    for (ManifestTensor& tensor : layer.tensors) tensor.xxh3_128.clear();
  }
  return manifest;
}

std::string plan_identity(const std::vector<Manifest>& planned) {
  Checksum sum;
  for (const Manifest& manifest : planned) {
    const std::string text = write_manifest(without_data(manifest));
    sum.update(std::as_bytes(std::span(text)));
  }
  return sum.hex();
}

}  // namespace mxfp4
