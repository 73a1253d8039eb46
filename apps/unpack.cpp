// unpack: every layer back to the loaded layout, padding cropped.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/commands.hpp"
#include "apps/interrupt.hpp"
#include "apps/session.hpp"
#include "formats/blob/blob_check.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/blob/layer_mark.hpp"
#include "formats/conversion/output_directory.hpp"
#include "formats/conversion/unfinished.hpp"
#include "formats/conversion/unpack_output.hpp"
#include "formats/os/atomic_file.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/buffer.hpp"
#include "lib/exec/pipeline.hpp"
#include "lib/layouts/run_output.hpp"
#include "lib/load/slice.hpp"
#include "lib/plan/plan.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// One slot that is given back, and where it comes from.
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

std::vector<Output> outputs_of(const Manifest& manifest, const ManifestLayer& layer) {
  if (manifest.layout == kLoadedLayoutId) return loaded_outputs(layer.loaded);
  const Layout* layout = layout_by_id(manifest.layout);
  if (layout == nullptr) {
    throw Error::input(fmt::format("unknown layout '{}'", manifest.layout))
        .hint("a newer mxfp4-repack wrote this blob");
  }
  return layout->outputs({layer.loaded, manifest.target});
}

// The file must hold what the layout writes for these sizes.
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
      if (!output.combine.empty()) {
        for (const std::string& name : output.combine.front().inverse_from) {
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

// One piece of work: some granules of one slot.
struct UnpackJob {
  size_t restored = 0;
  int64_t first = 0;
  int64_t granules = 0;
};

struct UnpackToken {
  Buffer written;
  std::vector<Buffer> others;
  Buffer loaded;
  Buffer scratch;
  Buffer out;
  MutableBytes result;
  int64_t offset = 0;  // of `result` in the file
};

constexpr int64_t kJobBytes = int64_t{8} << 20;

std::vector<UnpackJob> plan_jobs(const PackedLayer& packed, int64_t num_experts) {
  std::vector<UnpackJob> jobs;
  for (size_t i = 0; i < packed.restored.size(); ++i) {
    const Output& output = *packed.restored[i].output;
    const int64_t total = granule_count(output, num_experts);
    const int64_t step =
        std::max<int64_t>(1, kJobBytes / std::max<int64_t>(1, output.program.out_bytes()));
    for (int64_t first = 0; first < total; first += step) {
      jobs.push_back({i, first, std::min(step, total - first)});
    }
  }
  return jobs;
}

void restore(const LayerReader& reader, const Restored& restored, const UnpackJob& job,
             UnpackToken& token) {
  const Output& output = *restored.output;
  const int64_t written_bytes = output.program.out_bytes();
  const int64_t experts = output.experts_per_granule;
  const int64_t loaded_bytes = experts * restored.crop.stored.bytes();
  const int64_t out_bytes = experts * restored.crop.loaded.bytes();
  token.result = token.out.get(job.granules * out_bytes);
  token.others.resize(std::max(token.others.size(), restored.others.size()));
  const MutableBytes scratch = token.scratch.get(scratch_bytes(output));
  for (int64_t g = 0; g < job.granules; ++g) {
    const MutableBytes written = token.written.get(written_bytes);
    reader.read(restored.offset + (job.first + g) * written_bytes, written);
    std::vector<ConstBytes> others;
    for (size_t i = 0; i < restored.others.size(); ++i) {
      const int64_t bytes = restored.others[i]->program.out_bytes();
      const MutableBytes other = token.others[i].get(bytes);
      reader.read(restored.other_offsets[i] + (job.first + g) * bytes, other);
      others.push_back(other);
    }
    const MutableBytes loaded = token.loaded.get(loaded_bytes);
    run_inverse(output, written, others, loaded, scratch);
    for (int64_t e = 0; e < experts; ++e) {
      restored.crop.forward(
          loaded.subspan(static_cast<size_t>(e * restored.crop.stored.bytes()),
                         static_cast<size_t>(restored.crop.stored.bytes())),
          token.result.subspan(
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
  metadata[kUnpackedMark] = manifest.layout;  // by which --force knows the file
  return make_safetensors_header(tensors, metadata, kSafetensorsAlignment);
}

// One layer of one rank; returns the bytes written.
int64_t unpack_layer(const fs::path& blob, const fs::path& directory, const Manifest& manifest,
                     const ManifestLayer& layer, const ResourceOptions& resources,
                     std::set<std::string>& lost, Progress& progress) {
  const LayerReader reader(blob / layer.file);
  const PackedLayer packed = in_context((blob / layer.file).string(), [&] {
    require_layer_file(reader, manifest, layer);
    return describe(manifest, layer, reader.header());
  });
  lost.insert(packed.lost.begin(), packed.lost.end());
  AtomicFile file(directory / layer_file_name(layer.index, false));
  const std::string header = unpacked_header(manifest, layer, packed);
  file.append(std::as_bytes(std::span(header)));
  const std::vector<UnpackJob> jobs = plan_jobs(packed, layer.loaded.dims.num_experts);
  int64_t cost = 1;
  for (const Restored& restored : packed.restored) {
    cost = std::max(cost, 3 * restored.output->program.out_bytes() + kJobBytes +
                              scratch_bytes(*restored.output));
  }
  const int64_t tokens = tokens_for(resources.memory, cost, resources.threads);
  std::vector<UnpackToken> in_flight(static_cast<size_t>(tokens));
  int64_t end = file.size();
  run_pipeline(static_cast<int64_t>(jobs.size()), {resources.threads, tokens},
               {.read = [](int64_t, int64_t) { check_interrupted(); },
                .work =
                    [&](int64_t job, int64_t token) {
                      const UnpackJob& what = jobs[static_cast<size_t>(job)];
                      restore(reader, packed.restored[what.restored], what,
                              in_flight[static_cast<size_t>(token)]);
                    },
                .place =
                    [&](int64_t, int64_t at) {
                      UnpackToken& token = in_flight[static_cast<size_t>(at)];
                      token.offset = end;
                      end += static_cast<int64_t>(token.result.size());
                    },
                .store =
                    [&](int64_t, int64_t at) {
                      const UnpackToken& token = in_flight[static_cast<size_t>(at)];
                      const ConstBytes result = token.result;
                      file.write_at(token.offset, {&result, 1});
                    },
                .write =
                    [&](int64_t, int64_t at) {
                      const UnpackToken& token = in_flight[static_cast<size_t>(at)];
                      progress.advance(static_cast<int64_t>(token.result.size()));
                    }});
  file.commit();
  return file.size();
}

std::vector<fs::path> layer_files(const std::vector<fs::path>& blobs,
                                  const std::vector<Manifest>& manifests) {
  std::vector<fs::path> files;
  for (size_t i = 0; i < blobs.size(); ++i) {
    for (const ManifestLayer& layer : manifests[i].layers) files.push_back(blobs[i] / layer.file);
  }
  return files;
}

int64_t unpacked_bytes(const std::vector<Manifest>& manifests) {
  int64_t total = 0;
  for (const Manifest& manifest : manifests) {
    for (const ManifestLayer& layer : manifest.layers) {
      for (const Output& output : loaded_outputs(layer.loaded)) total += output.spec.bytes();
    }
  }
  return total;
}

struct Unpacked {
  std::set<std::string> lost;
  int64_t bytes = 0;
  int64_t files = 0;
};

// All layers of all ranks, into `home`.
Unpacked unpack_all(const UnpackOptions& options, const std::vector<fs::path>& blobs,
                    const std::vector<Manifest>& manifests, const fs::path& home,
                    Progress& progress) {
  Unpacked unpacked;
  for (size_t i = 0; i < blobs.size(); ++i) {
    const fs::path directory = home / rank_directory(manifests[i].rank);
    make_directories(directory);
    for (const ManifestLayer& layer : manifests[i].layers) {
      unpacked.bytes += unpack_layer(blobs[i], directory, manifests[i], layer, options.resources,
                                     unpacked.lost, progress);
      ++unpacked.files;
    }
  }
  return unpacked;
}

}  // namespace

int run_unpack(const UnpackOptions& options, const Console& console) {
  refuse_unfinished(options.blob);
  const std::vector<fs::path> blobs = find_blobs(options.blob);
  if (blobs.empty()) {
    throw Error::input(
        fmt::format("{}: no {} here, so no complete blob", options.blob.string(), kManifestName));
  }
  std::vector<Manifest> manifests;
  manifests.reserve(blobs.size());
  for (const fs::path& blob : blobs) manifests.push_back(read_manifest(blob));
  const std::vector<std::string> findings = check_ranks(blobs, manifests);
  if (!findings.empty()) throw Error::input(findings.front());
  refuse_inputs_in(options.output, blobs);
  refuse_inputs_in(options.output, layer_files(blobs, manifests));
  watch_signals("nothing of it is left");
  const int64_t planned = unpacked_bytes(manifests);
  UnpackOutput output(options.output, options.force,
                      static_cast<int64_t>(layer_files(blobs, manifests).size()), planned,
                      check_interrupted);
  Progress progress(console, planned);
  const auto [lost, bytes, files] = unpack_all(options, blobs, manifests, output.home(), progress);
  const std::string left = output.commit();
  progress.finish();
  warn_of_missing_ranks(options.blob, manifests, console);
  if (!left.empty()) console.warn(left);
  for (const std::string& text : lost) console.warn(text);
  if (console.json()) {
    nlohmann::ordered_json json;
    json["output"] = options.output.string();
    json["files"] = files;
    json["bytes"] = bytes;
    json["warnings"] = lost;
    console.result_json(json);
  } else {
    const fs::path first = options.output / rank_directory(manifests.front().rank);
    console.say(fmt::format(
        "{}: {} in the loaded layout, {}; next: mxfp4-repack inspect {}",
        shell_word(options.output.string()), count_of(static_cast<uint64_t>(files), "layer file"),
        pace(bytes, bytes, progress.seconds()), shell_word(first.lexically_normal().string())));
  }
  return kOk;
}

}  // namespace mxfp4
