#include "formats/conversion/restore.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "formats/blob/blob_check.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/blob/layer_mark.hpp"
#include "formats/blob/layout_facts.hpp"
#include "formats/blob/restored_slots.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/conversion/memory_budget.hpp"
#include "formats/os/atomic_file.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/buffer.hpp"
#include "lib/exec/job_pipeline.hpp"
#include "lib/layouts/run_output.hpp"
#include "lib/load/slice.hpp"
#include "lib/plan/frames.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// One slot of a layer that is restored, without its padding.
struct Restored {
  const RestoredSlot* slot = nullptr;  // in PackedLayer::plan
  Assembly crop;
  SafetensorsTensor target;
};

struct PackedLayer {
  RestorePlan plan;
  std::vector<Restored> restored;  // in the order of the unpacked file
};

PackedLayer describe(const Manifest& manifest, const ManifestLayer& layer,
                     const SafetensorsHeader& header) {
  PackedLayer packed;
  packed.plan = plan_restore(manifest, layer);
  check_packed_tensors(packed.plan, header);
  LoadedSpec cropped = layer.loaded;
  cropped.dims.hidden_size = layer.hidden_size;
  cropped.dims.intermediate_size = manifest.rank.end - manifest.rank.begin;
  for (const PlannedTensor& target :
       arrange_tensors(layer.prefix, loaded_outputs(cropped), cropped.dims.num_experts)) {
    const Slot slot = *slot_from_name(target.name.substr(layer.prefix.size() + 1));
    Restored restored;
    restored.slot = packed.plan.slot(slot);
    if (restored.slot == nullptr) continue;
    restored.crop = make_crop(layer.loaded, slot, manifest.order, cropped.dims.hidden_size,
                              cropped.dims.intermediate_size);
    restored.target.name = target.name;
    restored.target.spec = target.spec;
    packed.restored.push_back(std::move(restored));
  }
  return packed;
}

// One job: some granules of one slot.
struct RestoreJob {
  size_t restored = 0;  // index into PackedLayer::restored
  UnitRange granules;
};

// Buffers of a job in flight.
struct RestoreBuffers {
  SlotFrames frames;
  RestoreScratch scratch;
  Buffer loaded;
  Buffer out;
  MutableBytes result;
  ChecksumPart sum;    // of `result`, if the file is read back
  int64_t offset = 0;  // of `result` in the file
};

std::vector<RestoreJob> cut_jobs(const PackedLayer& packed, int64_t num_experts) {
  std::vector<RestoreJob> jobs;
  for (size_t i = 0; i < packed.restored.size(); ++i) {
    const Output& output = *packed.restored[i].slot->output;
    const int64_t bytes = output.program.out_bytes();
    for (const UnitRange& range : cut_units(granule_count(output, num_experts), bytes,
                                            granules_per_frame(bytes), kJobBytes)) {
      jobs.push_back({i, range});
    }
  }
  return jobs;
}

RunMemory memory_of(const PackedLayer& packed, bool compressed) {
  RunMemory memory{.job_bytes = 1, .outputs = {}, .direction = Direction::kInverse};
  for (const Restored& restored : packed.restored) {
    const auto frames = static_cast<int64_t>(compressed ? 1 + restored.slot->others.size() : 0);
    const int64_t job_bytes =
        3 * restored.slot->output->program.out_bytes() + kJobBytes + frames * kFrameBytes;
    memory.job_bytes = std::max(memory.job_bytes, job_bytes);
    memory.outputs.push_back(restored.slot->output);
  }
  return memory;
}

void restore(const LayerReader& reader, const Restored& restored, const RestoreJob& job,
             RestoreBuffers& buffers) {
  const int64_t experts = restored.slot->output->experts_per_granule;
  const int64_t loaded_bytes = experts * restored.crop.stored.bytes();
  const int64_t out_bytes = experts * restored.crop.loaded.bytes();
  buffers.result = buffers.out.get(job.granules.count * out_bytes);
  for (int64_t g = 0; g < job.granules.count; ++g) {
    const MutableBytes loaded = buffers.loaded.get(loaded_bytes);
    restore_granule(reader, *restored.slot, job.granules.first + g, buffers.frames, buffers.scratch,
                    loaded);
    for (int64_t e = 0; e < experts; ++e) {
      restored.crop.forward(
          loaded.subspan(static_cast<size_t>(e * restored.crop.stored.bytes()),
                         static_cast<size_t>(restored.crop.stored.bytes())),
          buffers.result.subspan(
              static_cast<size_t>(g * out_bytes + e * restored.crop.loaded.bytes()),
              static_cast<size_t>(restored.crop.loaded.bytes())));
    }
  }
}

std::string unpacked_header(const Manifest& manifest, const ManifestLayer& layer,
                            const PackedLayer& packed) {
  std::vector<SafetensorsTensor> tensors;
  for (const Restored& restored : packed.restored) {
    append_tensor(tensors, restored.target.name, restored.target.spec);
  }
  std::map<std::string, std::string> metadata = loaded_metadata(manifest, layer);
  metadata[kUnpackedMark] = manifest.layout;  // by which --force recognises the file
  return make_safetensors_header(tensors, metadata, kSafetensorsAlignment);
}

// Restores one layer; returns the bytes written.
int64_t restore_layer(const fs::path& blob, const Directory& directory, const Manifest& manifest,
                      const ManifestLayer& layer, const RunLimits& limits, const RunHooks& hooks,
                      ReadBack read_back, std::set<std::string>& lost) {
  const LayerReader reader(blob / layer.file);
  const PackedLayer packed = in_file((blob / layer.file).string(), [&] {
    require_layer_file(reader, manifest, layer);
    return describe(manifest, layer, reader.header());
  });
  // All layers of a rank lose the same, so a set holds each loss once.
  for (const SlotLoss& loss : packed.plan.lost) {
    lost.insert(fmt::format("{}: {}", blob.string(), loss.what));
  }
  const RunMemory memory = memory_of(packed, reader.compressed());
  require_memory(limits, memory);
  AtomicFile file(directory, layer_file_name(layer.index, false));
  const std::string header = unpacked_header(manifest, layer, packed);
  file.append(std::as_bytes(std::span(header)));
  Checksum sum;
  if (read_back == ReadBack::kYes) sum.update(std::as_bytes(std::span(header)));
  const std::vector<RestoreJob> jobs = cut_jobs(packed, layer.loaded.dims.num_experts);
  int64_t end = file.size();
  run_jobs<RestoreJob, RestoreBuffers>(
      jobs, jobs_in_flight(limits, memory),
      {.read = [&](const RestoreJob&, RestoreBuffers&) { hooks.check_stop(); },
       .work =
           [&](const RestoreJob& job, RestoreBuffers& buffers) {
             in_file((blob / layer.file).string(),
                     [&] { restore(reader, packed.restored[job.restored], job, buffers); });
           },
       .place =
           [&](const RestoreJob&, RestoreBuffers& buffers) {
             buffers.offset = std::exchange(end, end + static_cast<int64_t>(buffers.result.size()));
           },
       .store =
           [&](const RestoreJob&, RestoreBuffers& buffers) {
             const ConstBytes result = buffers.result;
             if (read_back == ReadBack::kYes) {
               buffers.sum.begin(buffers.offset);
               buffers.sum.update(result);
             }
             file.write_at(buffers.offset, {&result, 1});
           },
       .finish =
           [&](const RestoreJob&, RestoreBuffers& buffers) {
             if (read_back == ReadBack::kYes) sum.append(buffers.sum);
             hooks.progress(static_cast<int64_t>(buffers.result.size()));
           }});
  commit_summed(file, sum.hex(), read_back, [&] { hooks.writes(file); });
  return file.size();
}

}  // namespace

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
      for (const Output& output : loaded_outputs(layer.loaded)) total += output.spec.bytes();
    }
  }
  return total;
}

RestoreResult restore_blob(const fs::path& blob, const Manifest& manifest,
                           const Directory& directory, const RunLimits& limits,
                           const RunHooks& hooks, ReadBack read_back) {
  require_restorable(blob, manifest);
  RestoreResult result;
  for (const ManifestLayer& layer : manifest.layers) {
    result.bytes +=
        restore_layer(blob, directory, manifest, layer, limits, hooks, read_back, result.lost);
    ++result.files;
  }
  return result;
}

}  // namespace mxfp4
