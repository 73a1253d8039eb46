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
#include "formats/conversion/memory_budget.hpp"
#include "formats/os/atomic_file.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/buffer.hpp"
#include "lib/exec/job_pipeline.hpp"
#include "lib/layouts/run_output.hpp"
#include "lib/load/slice.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// One slot that is restored, and the outputs that it comes from.
struct Restored {
  const Output* output = nullptr;
  int64_t offset = 0;                 // of the output in the packed file's data
  std::vector<const Output*> others;  // outputs that the inverse also reads
  std::vector<int64_t> other_offsets;
  Assembly crop;
  SafetensorsTensor target;
};

// The packed outputs of one layer, with their places in the file.
struct PackedLayer {
  std::vector<Output> outputs;
  std::vector<PlannedTensor> tensors;  // in file order
  std::vector<Restored> restored;      // in the order of the unpacked file
  std::vector<std::string> lost;

  [[nodiscard]] int64_t offset_of(std::string_view output) const {
    for (const PlannedTensor& tensor : tensors) {
      if (outputs[tensor.output].name == output) return tensor.offset;
    }
    throw Error::internal(fmt::format("no output {}", output));
  }
  [[nodiscard]] const Output& output(std::string_view name) const {
    return *std::ranges::find(outputs, name, &Output::name);
  }
};

// Throws Error::input unless the file holds what the layout writes for these sizes.
void check_tensors(const PackedLayer& packed, const SafetensorsHeader& header) {
  bool equal = packed.tensors.size() == header.tensors.size();
  for (size_t i = 0; equal && i < packed.tensors.size(); ++i) {
    equal = packed.tensors[i].name == header.tensors[i].name &&
            packed.tensors[i].spec == header.tensors[i].spec &&
            packed.tensors[i].offset == header.tensors[i].begin;
  }
  if (!equal) throw Error::input("the file's tensors are not those of its layout and sizes");
}

PackedLayer describe(const Manifest& manifest, const ManifestLayer& layer,
                     const SafetensorsHeader& header) {
  PackedLayer packed;
  packed.outputs = outputs_of(manifest, layer);
  packed.tensors = arrange_tensors(layer.prefix, packed.outputs, layer.loaded.dims.num_experts);
  check_tensors(packed, header);
  LoadedSpec cropped = layer.loaded;
  cropped.dims.hidden_size = layer.hidden_size;
  cropped.dims.intermediate_size = manifest.rank.end - manifest.rank.begin;
  for (const PlannedTensor& target :
       arrange_tensors(layer.prefix, loaded_outputs(cropped), cropped.dims.num_experts)) {
    const Slot slot = *slot_from_name(target.name.substr(layer.prefix.size() + 1));
    for (const Output& output : packed.outputs) {
      if (output.slot != slot || !output.restores_slot) continue;
      Restored restored;
      restored.output = &output;
      restored.offset = packed.offset_of(output.name);
      if (output.combination) {
        for (const std::string& name : output.combination->inverse_from) {
          restored.others.push_back(&packed.output(name));
          restored.other_offsets.push_back(packed.offset_of(name));
        }
      }
      restored.crop = make_crop(layer.loaded, slot, manifest.order, cropped.dims.hidden_size,
                                cropped.dims.intermediate_size);
      restored.target.name = target.name;
      restored.target.spec = target.spec;
      packed.restored.push_back(std::move(restored));
      if (!output.lost.empty()) {
        packed.lost.push_back(fmt::format("{} is not exact: {}", output.name, output.lost));
      }
      break;
    }
  }
  for (Slot slot : kAllSlots) {
    if (layer.loaded.has(slot) && std::ranges::none_of(packed.restored, [&](const Restored& r) {
          return r.output->slot == slot;
        })) {
      packed.lost.push_back(fmt::format("{} is not in the blob", slot_name(slot)));
    }
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
  Buffer written;
  std::vector<Buffer> others;
  Buffer loaded;
  Buffer scratch;
  Buffer out;
  MutableBytes result;
  int64_t offset = 0;  // of `result` in the file
};

std::vector<RestoreJob> cut_jobs(const PackedLayer& packed, int64_t num_experts) {
  std::vector<RestoreJob> jobs;
  for (size_t i = 0; i < packed.restored.size(); ++i) {
    const Output& output = *packed.restored[i].output;
    for (const UnitRange& range :
         cut_units(granule_count(output, num_experts), output.program.out_bytes(), 1, kJobBytes)) {
      jobs.push_back({i, range});
    }
  }
  return jobs;
}

RunMemory memory_of(const PackedLayer& packed) {
  RunMemory memory{.job_bytes = 1, .outputs = {}, .direction = Direction::kInverse};
  for (const Restored& restored : packed.restored) {
    const int64_t job_bytes = 3 * restored.output->program.out_bytes() + kJobBytes;
    memory.job_bytes = std::max(memory.job_bytes, job_bytes);
    memory.outputs.push_back(restored.output);
  }
  return memory;
}

void restore(const LayerReader& reader, const Restored& restored, const RestoreJob& job,
             RestoreBuffers& buffers) {
  const Output& output = *restored.output;
  const int64_t written_bytes = output.program.out_bytes();
  const int64_t experts = output.experts_per_granule;
  const int64_t loaded_bytes = experts * restored.crop.stored.bytes();
  const int64_t out_bytes = experts * restored.crop.loaded.bytes();
  buffers.result = buffers.out.get(job.granules.count * out_bytes);
  buffers.others.resize(std::max(buffers.others.size(), restored.others.size()));
  const MutableBytes scratch = buffers.scratch.get(scratch_bytes(output, Direction::kInverse));
  for (int64_t g = 0; g < job.granules.count; ++g) {
    const MutableBytes written = buffers.written.get(written_bytes);
    reader.read(restored.offset + (job.granules.first + g) * written_bytes, written);
    std::vector<ConstBytes> others;
    for (size_t i = 0; i < restored.others.size(); ++i) {
      const int64_t bytes = restored.others[i]->program.out_bytes();
      const MutableBytes other = buffers.others[i].get(bytes);
      reader.read(restored.other_offsets[i] + (job.granules.first + g) * bytes, other);
      others.push_back(other);
    }
    const MutableBytes loaded = buffers.loaded.get(loaded_bytes);
    run_inverse(output, written, others, loaded, scratch);
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
int64_t restore_layer(const fs::path& blob, const fs::path& directory, const Manifest& manifest,
                      const ManifestLayer& layer, const RunLimits& limits, const RunHooks& hooks,
                      std::set<std::string>& lost) {
  const LayerReader reader(blob / layer.file);
  const PackedLayer packed = in_context((blob / layer.file).string(), [&] {
    require_layer_file(reader, manifest, layer);
    return describe(manifest, layer, reader.header());
  });
  // All layers of a rank lose the same, so a set holds each loss once.
  for (const std::string& what : packed.lost) {
    lost.insert(fmt::format("{}: {}", blob.string(), what));
  }
  const RunMemory memory = memory_of(packed);
  require_memory(limits, memory);
  AtomicFile file(directory / layer_file_name(layer.index, false));
  const std::string header = unpacked_header(manifest, layer, packed);
  file.append(std::as_bytes(std::span(header)));
  const std::vector<RestoreJob> jobs = cut_jobs(packed, layer.loaded.dims.num_experts);
  int64_t end = file.size();
  run_jobs<RestoreJob, RestoreBuffers>(
      jobs, jobs_in_flight(limits, memory),
      {.read = [&](const RestoreJob&, RestoreBuffers&) { hooks.check_stop(); },
       .work =
           [&](const RestoreJob& job, RestoreBuffers& buffers) {
             in_context((blob / layer.file).string(),
                        [&] { restore(reader, packed.restored[job.restored], job, buffers); });
           },
       .place =
           [&](const RestoreJob&, RestoreBuffers& buffers) {
             buffers.offset = std::exchange(end, end + static_cast<int64_t>(buffers.result.size()));
           },
       .store =
           [&](const RestoreJob&, RestoreBuffers& buffers) {
             const ConstBytes result = buffers.result;
             file.write_at(buffers.offset, {&result, 1});
           },
       .finish =
           [&](const RestoreJob&, RestoreBuffers& buffers) {
             hooks.progress(static_cast<int64_t>(buffers.result.size()));
           }});
  file.commit();
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
                           const fs::path& directory, const RunLimits& limits,
                           const RunHooks& hooks) {
  require_restorable(blob, manifest);
  make_directories(directory);
  RestoreResult result;
  for (const ManifestLayer& layer : manifest.layers) {
    result.bytes += restore_layer(blob, directory, manifest, layer, limits, hooks, result.lost);
    ++result.files;
  }
  return result;
}

}  // namespace mxfp4
