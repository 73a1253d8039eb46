#include "formats/conversion/compare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/blob_writer.hpp"
#include "formats/blob/layout_facts.hpp"
#include "formats/conversion/first_difference.hpp"
#include "formats/conversion/memory_budget.hpp"
#include "formats/conversion/repacker.hpp"
#include "formats/decision/decide.hpp"
#include "formats/decision/recipes.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/job_pipeline.hpp"
#include "lib/layouts/knobs.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

using Findings = std::vector<std::string>;

// Adds a finding unless the manifest and the input agree.
class Differences {
 public:
  Differences(std::string place, Findings& findings)
      : place_(std::move(place)), findings_(findings) {}

  template <class Value>
  void check(std::string_view what, const Value& in_manifest, const Value& in_input) {
    if (in_manifest == in_input) return;
    findings_.push_back(fmt::format("{}: {}: {} in the manifest, the input has {}", place_, what,
                                    in_manifest, in_input));
  }

 private:
  std::string place_;
  Findings& findings_;
};

// "0 to 127", or the first few numbers if they are not consecutive.
std::string experts_text(const std::vector<int64_t>& experts) {
  constexpr size_t kMost = 8;
  const auto count = static_cast<int64_t>(experts.size());
  if (count > 1 && experts.back() - experts.front() == count - 1) {
    return fmt::format("{} to {}", experts.front(), experts.back());
  }
  const std::span<const int64_t> shown(experts.data(), std::min(experts.size(), kMost));
  return fmt::format("{}{}", fmt::join(shown, ","), shown.size() < experts.size() ? ",..." : "");
}

// Compares the facts of the model that bytes depend on, except layout, target and sizes.
void compare_model(const ModelLayers& input, const Manifest& manifest, Differences differences) {
  differences.check("w13_order", w13_order_name(manifest.order), w13_order_name(input.order));
  differences.check("bias_dtype", dtype_name(manifest.bias_dtype), dtype_name(input.bias_dtype));
}

// Keeps the layers that the manifest has.
void keep_layers(ModelLayers& input, const Manifest& manifest) {
  if (manifest.all_layers) return;
  std::erase_if(input.layers, [&](const ExpertLayer& layer) {
    return std::ranges::find(manifest.layers, layer.index, &ManifestLayer::index) ==
           manifest.layers.end();
  });
}

void compare_layers(const ModelLayers& input, const Manifest& manifest, Differences differences) {
  differences.check("layers", manifest.layers.size(), input.layers.size());
  if (input.layers.size() != manifest.layers.size()) return;
  for (size_t i = 0; i < input.layers.size(); ++i) {
    const ManifestLayer& layer = manifest.layers[i];
    differences.check("layer", layer.index, input.layers[i].index);
    differences.check(fmt::format("layer {}: hidden size", layer.index), layer.hidden_size,
                      input.layers[i].dims.hidden_size);
  }
}

// The manifest's rank as the loader cuts it out of the input.
RankSlice slice_of_input(const OpenedCheckpoint& input, const Manifest& manifest,
                         ExpertPlacement placement) {
  Deployment deployment;
  deployment.parallel = manifest.parallel;
  SliceRequest request{.rules = rules_of_blob(manifest),
                       .deployment = deployment,
                       .target = manifest.target,
                       .placement = placement,
                       .padded = manifest.layers.front().loaded.dims};
  if (input.config) request.config = &*input.config;
  request.caller = serving_caller(request.rules, input);
  const std::vector<RankSlice> ranks = cut_ranks(input.model, common_dims(input.model), request);
  if (manifest.rank.rank >= static_cast<int64_t>(ranks.size())) {
    throw Error::unsupported(
        fmt::format("rank {} of {}", manifest.rank.rank, manifest.rank.num_ranks));
  }
  return ranks[static_cast<size_t>(manifest.rank.rank)];
}

// The slice; empty, with a finding added, if the input cannot be cut into such ranks.
std::optional<RankSlice> find_slice(const OpenedCheckpoint& input, const Manifest& manifest,
                                    const std::string& place, Findings& findings) {
  try {
    RankSlice slice = slice_of_input(input, manifest, ExpertPlacement::kLinear);
    if (slice.experts != manifest.rank.experts) {
      RankSlice other = slice_of_input(input, manifest, ExpertPlacement::kRoundRobin);
      if (other.experts == manifest.rank.experts) return other;
    }
    return slice;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInput) throw;
    findings.push_back(fmt::format("{}: the input has no such rank: {}", place, error.what()));
    return std::nullopt;
  }
}

void compare_slice(const ModelLayers& input, const RankSlice& slice, const Manifest& manifest,
                   Differences differences) {
  const ScaleFill fill = scale_fill_of(input, slice);
  differences.check("scale_fill", std::to_integer<int>(manifest.scale_fill),
                    std::to_integer<int>(fill.intermediate));
  differences.check("hidden_scale_fill",
                    std::to_integer<int>(manifest.hidden_scale_fill.value_or(manifest.scale_fill)),
                    std::to_integer<int>(fill.hidden));
  const RankSlice& rank = manifest.rank;
  const LayerDims& padded = manifest.layers.front().loaded.dims;
  differences.check("ranks", rank.num_ranks, slice.num_ranks);
  differences.check("tensor parallel rank", rank.tp_rank, slice.tp_rank);
  differences.check("tensor parallel size", rank.tp_size, slice.tp_size);
  differences.check("expert parallel rank", rank.ep_rank, slice.ep_rank);
  differences.check("expert parallel size", rank.ep_size, slice.ep_size);
  differences.check("experts", experts_text(rank.experts), experts_text(slice.experts));
  differences.check("intermediate range", std::vector{rank.begin, rank.end},
                    std::vector{slice.begin, slice.end});
  differences.check("bias of w2", rank.w2_bias, slice.w2_bias);
  differences.check("padded hidden size", padded.hidden_size, slice.padded.hidden_size);
  differences.check("padded intermediate size", padded.intermediate_size,
                    slice.padded.intermediate_size);
}

// Compares the planned tensors of a layer with the manifest's.
void compare_tensors(const ManifestLayer& planned, const ManifestLayer& stored,
                     Differences differences) {
  const auto key = [](const ManifestLayer& layer, size_t i) {
    if (i >= layer.tensors.size()) return std::string("nothing");
    const ManifestTensor& tensor = layer.tensors[i];
    return fmt::format("{} {} {}", tensor.name, dtype_name(tensor.spec.dtype),
                       tensor.spec.shape.to_string());
  };
  differences.check(fmt::format("layer {}: experts", stored.index),
                    experts_text(stored.experts.value_or(std::vector<int64_t>{})),
                    experts_text(planned.experts.value_or(std::vector<int64_t>{})));
  for (size_t i = 0; i < std::max(planned.tensors.size(), stored.tensors.size()); ++i) {
    differences.check(fmt::format("layer {}: tensor {}", stored.index, i), key(stored, i),
                      key(planned, i));
  }
}

// Buffers of a job in flight.
struct CompareBuffers {
  JobBuffers made;
  Buffer stored;
  std::string finding;
};

// Says which byte of a job's piece is the first that differs from the stored one; empty if none
// does.
std::string compare_piece(const Plan& plan, const Piece& piece, const LayerReader& reader,
                          CompareBuffers& buffers) {
  const PlannedTensor& tensor = plan.files[piece.file].tensors[piece.tensor];
  const int64_t begin = piece.first_granule * tensor.granule_bytes;
  const MutableBytes stored = buffers.stored.get(piece.granules * tensor.granule_bytes);
  reader.read(tensor.offset + begin, stored);
  const ConstBytes made = buffers.made.pieces.front();
  const auto differs = first_difference(made, ConstBytes(stored).first(made.size()));
  if (!differs) return "";
  return fmt::format("{}: byte {} is not the repack of the input", tensor.name,
                     begin + static_cast<int64_t>(*differs));
}

// Makes every planned piece again and compares it with the blob's bytes. One rank is compared at a
// time, so that a job has one piece.
void compare_bytes(Repacker& repacker, const Plan& plan, const std::vector<LayerReader>& readers,
                   const std::vector<std::string>& paths, const RunLimits& limits,
                   const RunHooks& hooks, Findings& findings) {
  RunMemory memory{.outputs = outputs_of(plan), .direction = Direction::kForward};
  for (const Job& job : plan.jobs) {
    const Piece& piece = job.pieces.front();
    const int64_t granule = plan.files[piece.file].tensors[piece.tensor].granule_bytes;
    const int64_t stored = piece.granules * granule;
    memory.job_bytes = std::max(memory.job_bytes, job.cost + stored);
  }
  require_memory(limits, memory);
  repacker.expect(plan.jobs);
  run_jobs<Job, CompareBuffers>(
      plan.jobs, jobs_in_flight(limits, memory),
      {.read =
           [&](const Job& job, CompareBuffers& buffers) {
             hooks.check_stop();
             repacker.read(job, buffers.made);
           },
       .work =
           [&](const Job& job, CompareBuffers& buffers) {
             repacker.work(job, buffers.made);
             const Piece& piece = job.pieces.front();
             buffers.finding = in_context(paths[piece.file], [&] {
               return compare_piece(plan, piece, readers[piece.file], buffers);
             });
             if (!buffers.finding.empty()) {
               buffers.finding = fmt::format("{}: {}", paths[piece.file], buffers.finding);
             }
             repacker.release(job);
           },
       .finish =
           [&](const Job&, CompareBuffers& buffers) {
             if (!buffers.finding.empty()) findings.push_back(std::move(buffers.finding));
             hooks.progress(static_cast<int64_t>(buffers.made.pieces.front().size()));
           }});
}

}  // namespace

ManifestPlan plan_of_manifest(const std::shared_ptr<Source>& source, CheckpointOptions options,
                              const fs::path& directory, const Manifest& manifest) {
  ManifestPlan out;
  out.layout = layout_of(manifest);
  options.family = manifest.target.family;
  out.input = open_checkpoint(source, options, rules_of_blob(manifest));
  const std::string place = (directory / kManifestName).string();
  const Differences differences(place, out.findings);
  keep_layers(out.input.model, manifest);
  compare_model(out.input.model, manifest, differences);
  compare_layers(out.input.model, manifest, differences);
  if (!out.findings.empty()) return out;
  const std::optional<RankSlice> slice = find_slice(out.input, manifest, place, out.findings);
  if (!slice) return out;
  compare_slice(out.input.model, *slice, manifest, differences);
  if (!out.findings.empty()) return out;
  out.plan = make_plan(out.input.model, {*slice},
                       {.layout = out.layout, .parameters = layout_parameters(manifest.target)});
  for (size_t file = 0; file < out.plan.files.size(); ++file) {
    compare_tensors(describe_layer(out.plan, out.input.model, file, manifest.compression.zstd),
                    manifest.layers[file], differences);
  }
  return out;
}

Findings compare_with_checkpoint(const std::shared_ptr<Source>& source, CheckpointOptions options,
                                 const fs::path& directory, const Manifest& manifest,
                                 const RunLimits& limits, const RunHooks& hooks) {
  if (manifest.layers.empty()) return {};
  const ManifestPlan made = plan_of_manifest(source, std::move(options), directory, manifest);
  Findings findings = made.findings;
  if (!findings.empty()) return findings;
  std::vector<LayerReader> readers;
  std::vector<std::string> paths;
  for (const ManifestLayer& layer : manifest.layers) {
    paths.push_back((directory / layer.file).string());
    readers.emplace_back(paths.back());
  }
  Repacker repacker(*source, made.input.model, made.plan, made.layout,
                    layout_parameters(manifest.target));
  compare_bytes(repacker, made.plan, readers, paths, limits, hooks, findings);
  source->check_unchanged();
  return findings;
}

}  // namespace mxfp4
