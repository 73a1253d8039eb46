#include "formats/conversion/restore.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/blob/layout_facts.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/conversion/memory_budget.hpp"
#include "formats/os/atomic_file.hpp"
#include "formats/os/directory.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "formats/source/source.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/buffer.hpp"
#include "lib/exec/job_pipeline.hpp"
#include "lib/plan/cut.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;
using Metadata = std::map<std::string, std::string>;

// In the __metadata__ of every file that unpack writes: the layout that it was packed in.
constexpr const char* kUnpackedMark = "mxfp4_repack.unpacked";

// A shard, and its tensors' indices in the source.
struct RestoredShard {
  std::string name;
  std::vector<size_t> tensors;
};

// A tensor of a checkpoint that was not made of safetensors files has a file without that ending.
std::string shard_name(const std::string& file) {
  constexpr std::string_view kEnd = ".safetensors";
  return file.ends_with(kEnd) ? file : fmt::format("{}{}", file, kEnd);
}

// The shards that the checkpoint has, in the order of their first tensors.
std::vector<RestoredShard> shards_of(const Source& source) {
  std::vector<RestoredShard> shards;
  std::map<std::string, size_t> by_name;
  const std::vector<SourceTensor>& tensors = source.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto [found, added] = by_name.try_emplace(tensors[i].file, shards.size());
    if (added) shards.push_back({shard_name(tensors[i].file), {}});
    shards[found->second].tensors.push_back(i);
  }
  return shards;
}

std::string shard_header(const Source& source, const RestoredShard& shard,
                         const Metadata& metadata) {
  std::vector<SafetensorsTensor> tensors;
  for (const size_t index : shard.tensors) {
    append_tensor(tensors, source.tensors()[index].name, source.tensors()[index].spec);
  }
  return make_safetensors_header(tensors, metadata, kSafetensorsAlignment);
}

// Some bytes of a tensor.
struct RestoredPart {
  size_t tensor = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
};

// Parts that lie one behind another in a shard, written by one thread.
struct RestoreJob {
  std::vector<RestoredPart> parts;
  int64_t begin = 0;  // in the file
  int64_t bytes = 0;
};

// Jobs of at least kJobBytes each, the last one aside. The tensors of an expert share a job, and a
// part of a stacked tensor is whole experts: so a matrix is restored once.
std::vector<RestoreJob> cut_jobs(const BlobSource& blob, const RestoredShard& shard,
                                 int64_t begin) {
  std::vector<RestoreJob> jobs;
  int64_t last = -1;  // expert
  for (const size_t index : shard.tensors) {
    const ExpertShare& share = blob.shares[index];
    const int64_t bytes = blob.source->tensors()[index].spec.bytes();
    const int64_t step = share.expert >= 0 || share.bytes == 0
                             ? bytes
                             : std::max<int64_t>(1, kJobBytes / share.bytes) * share.bytes;
    for (int64_t at = 0; at < bytes; at += step) {
      const bool full = jobs.empty() || jobs.back().bytes >= kJobBytes;
      if (full && (jobs.empty() || share.expert < 0 || share.expert != last)) {
        jobs.push_back({.parts = {}, .begin = begin});
      }
      last = share.expert;
      const int64_t size = std::min(step, bytes - at);
      jobs.back().parts.push_back({index, at, size});
      jobs.back().bytes += size;
      begin += size;
    }
  }
  return jobs;
}

RunMemory memory_of(const BlobSource& blob) {
  RunMemory memory{.job_bytes = kJobBytes + blob.source->read_bytes(),
                   .outputs = {},
                   .direction = Direction::kInverse};
  for (const RestorePlan& plan : blob.plans) {
    for (const RestoredSlot& slot : plan.slots) memory.outputs.push_back(slot.output);
  }
  return memory;
}

void write_job(Source& source, const RestoreJob& job, AtomicFile& file, Buffer& buffer) {
  int64_t offset = job.begin;
  for (const RestoredPart& part : job.parts) {
    for (int64_t at = 0; at < part.bytes; at += kJobBytes) {
      const MutableBytes piece = buffer.get(std::min(kJobBytes, part.bytes - at));
      source.read(part.tensor, part.offset + at, piece);
      const ConstBytes written = piece;
      file.write_at(offset, {&written, 1});
      offset += std::ssize(piece);
    }
  }
}

int64_t write_shard(const BlobSource& blob, const RestoredShard& shard, const Metadata& metadata,
                    const Directory& directory, const PipelineLimits& limits,
                    const RunHooks& hooks) {
  AtomicFile file(directory, shard.name);
  const std::string header = shard_header(*blob.source, shard, metadata);
  file.append(std::as_bytes(std::span(header)));
  const std::vector<RestoreJob> jobs = cut_jobs(blob, shard, file.size());
  run_jobs<RestoreJob, Buffer>(
      jobs, limits,
      {.work =
           [&](const RestoreJob& job, Buffer& buffer) {
             hooks.check_stop();
             write_job(*blob.source, job, file, buffer);
           },
       .finish = [&](const RestoreJob& job, Buffer&) { hooks.progress(job.bytes); }});
  file.commit();
  return file.size();
}

std::string index_text(const Source& source, const std::vector<RestoredShard>& shards) {
  nlohmann::json map = nlohmann::json::object();  // sorted by name, as the hub's are
  for (const RestoredShard& shard : shards) {
    for (const size_t index : shard.tensors) map[source.tensors()[index].name] = shard.name;
  }
  auto json = nlohmann::ordered_json::object();
  json["metadata"] = {{"total_size", published_bytes(source)}};
  json["weight_map"] = map;
  return json.dump(2) + "\n";
}

// Writes all shards; `metadata_of` gives the __metadata__ of one.
template <class MetadataOf>
RestoreResult write_shards(const BlobSource& blob, const std::vector<RestoredShard>& shards,
                           const Directory& directory, const RunLimits& limits,
                           const RunHooks& hooks, const MetadataOf& metadata_of) {
  RestoreResult result;
  result.lost.insert(blob.lost.begin(), blob.lost.end());
  const RunMemory memory = memory_of(blob);
  require_memory(limits, memory);
  const PipelineLimits in_flight = jobs_in_flight(limits, memory);
  for (const RestoredShard& shard : shards) {
    result.bytes += write_shard(blob, shard, metadata_of(shard), directory, in_flight, hooks);
    ++result.files;
  }
  blob.source->check_unchanged();
  return result;
}

}  // namespace

int64_t published_bytes(const Source& source) {
  int64_t total = 0;
  for (const SourceTensor& tensor : source.tensors()) total += tensor.spec.bytes();
  return total;
}

void require_restorable(const fs::path& blob, const Manifest& manifest) {
  if (manifest.layers.empty() || layout_of(manifest) == nullptr) return;
  for (const Output& output : outputs_of(manifest, manifest.layers.front())) {
    if (output.restores_slot || output.lost.empty()) continue;
    throw Error::unsupported(fmt::format("layout {}: {} cannot be restored: {}", manifest.layout,
                                         output.name, output.lost))
        .in_file(blob.string())
        .hint("the checkpoint that it was made from has it");
  }
}

int64_t restored_bytes(const std::vector<Manifest>& manifests) {
  int64_t total = 0;
  for (const Manifest& manifest : manifests) {
    for (const ManifestLayer& layer : manifest.layers) {
      for (const Output& output : loaded_outputs(layer.recipe.loaded()))
        total += output.spec.bytes();
    }
  }
  return total;
}

RestoreResult restore_blob(const fs::path& blob, const Manifest& manifest,
                           const Directory& directory, const RunLimits& limits,
                           const RunHooks& hooks) {
  require_restorable(blob, manifest);
  const BlobSource source = open_loaded_source(blob, manifest);
  const std::vector<RestoredShard> shards = shards_of(*source.source);
  auto layer = manifest.layers.begin();  // each has a shard
  return write_shards(source, shards, directory, limits, hooks, [&](const RestoredShard&) {
    Metadata metadata = loaded_metadata(manifest, *layer++);
    metadata[kUnpackedMark] = manifest.layout;
    return metadata;
  });
}

RestoreResult write_as_published(const BlobSource& blob, const std::string& layout,
                                 const Directory& directory, const RunLimits& limits,
                                 const RunHooks& hooks) {
  const Source& source = *blob.source;
  const std::vector<RestoredShard> shards = shards_of(source);
  const std::optional<std::string> config = source.config_json();
  Metadata metadata = source.attributes();
  metadata["format"] = "pt";
  metadata[kUnpackedMark] = layout;
  RestoreResult result = write_shards(blob, shards, directory, limits, hooks,
                                      [&](const RestoredShard&) { return metadata; });
  const auto write = [&](std::string_view name, const std::string& text) {
    write_atomically(directory, std::string(name), text);
  };
  write(kIndexName, index_text(source, shards));
  if (config) write(kConfigName, *config);
  return result;
}

}  // namespace mxfp4
