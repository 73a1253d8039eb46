// mxfp4_repack.shard-NNN-of-NNN.json: what one of several processes wrote into a blob (convert
// --shard), sealed like a manifest; finalize puts them together. Written last by its shard, so its
// presence means that the shard is complete.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "lib/plan/shard.hpp"

namespace mxfp4 {

// What a shard read. The same path on the same machine must look the same to all shards; machines
// may have copies of their own.
struct SourceSeen {
  std::string machine;  // empty: not known
  std::string place;    // checksum of the absolute path, which need not be UTF-8
  std::string stamp;    // of names, sizes and modification times of all files
  // Whether the source changed between the two.
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
  std::set<std::string> warnings;  // that the data of this shard's layers gave rise to
  std::vector<Manifest> ranks;  // one a rank, with this shard's layers; `rest` in shard 0's alone
};

// "mxfp4_repack.shard-000-of-004.json".
[[nodiscard]] std::string shard_manifest_name(const Shard& shard);
[[nodiscard]] bool is_shard_manifest(std::string_view file_name);

[[nodiscard]] std::string write_shard_manifest(const ShardManifest& manifest);
// Throws Error::input naming the key.
[[nodiscard]] ShardManifest parse_shard_manifest(std::string_view text);

// The shard manifests in a directory, sorted by name. Throws Error::input naming the file.
[[nodiscard]] std::vector<std::filesystem::path> find_shard_manifests(
    const std::filesystem::path& directory);
[[nodiscard]] ShardManifest read_shard_manifest(const std::filesystem::path& path);

// The manifests that one process would have written. Throws Error::input when a shard is missing or
// there twice, when they are of different plans or of a source that changed in between, or when a
// layer is missing or there twice.
[[nodiscard]] std::vector<Manifest> merge_shards(std::vector<ShardManifest> shards);

// XXH3-128 over all that the manifests of a plan will say, data aside: equal for equal plans.
[[nodiscard]] std::string plan_identity(const std::vector<Manifest>& planned);

// A manifest without what only the data can tell: checksums, sizes of files, warnings.
[[nodiscard]] Manifest without_data(Manifest manifest);

}  // namespace mxfp4
