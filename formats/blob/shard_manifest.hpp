// mxfp4_repack.shard-NNN-of-NNN.json says what one of several processes wrote into a blob (convert
// --shard). It is sealed like a manifest. Its shard writes it last, so its presence means that the
// shard is complete. finalize merges the files of all shards.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "lib/plan/shard.hpp"

namespace mxfp4 {

// Describes the source that a shard read. All shards must see the same files at the same path of
// the same machine; other machines may have copies.
struct SourceSeen {
  std::string machine;  // empty: not known
  std::string place;    // checksum of the absolute path, which need not be UTF-8
  std::string stamp;    // of names, sizes and modification times of all files
  // Whether the source changed between two shards that read it at the same place.
  [[nodiscard]] bool contradicts(const SourceSeen& other) const {
    return !machine.empty() && machine == other.machine && place == other.place &&
           stamp != other.stamp;
  }
};

struct ShardManifest {
  Shard shard;
  std::string plan;  // identity of the whole plan, equal in all shards
  SourceSeen source;
  std::vector<int64_t> layers;     // numbers of all layers of the plan
  std::set<std::string> warnings;  // about the data of this shard's layers
  std::vector<Manifest> ranks;  // one a rank, with this shard's layers; only shard 0's have `rest`
};

// "mxfp4_repack.shard-000-of-004.json".
[[nodiscard]] std::string shard_manifest_name(const Shard& shard);
[[nodiscard]] bool is_shard_manifest(std::string_view file_name);

[[nodiscard]] std::string write_shard_manifest(const ShardManifest& manifest);
// Throws Error::input naming the key.
[[nodiscard]] ShardManifest parse_shard_manifest(std::string_view text);

// The paths of the shard manifests in a directory, sorted by name.
[[nodiscard]] std::vector<std::filesystem::path> find_shard_manifests(
    const std::filesystem::path& directory);
// Throws Error::input naming file and key.
[[nodiscard]] ShardManifest read_shard_manifest(const std::filesystem::path& path);

// The manifests that a single process would have written. Throws Error::input if a shard or a layer
// is missing or there twice, if plans differ, or if the source changed between shards.
[[nodiscard]] std::vector<Manifest> merge_shards(std::vector<ShardManifest> shards);

// XXH3-128 of everything that the manifests of a plan will say and that does not depend on the
// data: equal for equal plans.
[[nodiscard]] std::string plan_identity(const std::vector<Manifest>& planned);

// The manifest without what depends on the data: checksums, sizes of files, warnings.
[[nodiscard]] Manifest without_data(Manifest manifest);

}  // namespace mxfp4
