#include "apps/verify_against.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "apps/session.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/blob/blob_writer.hpp"
#include "formats/conversion/repacker.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/exec/pipeline.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

using Findings = std::vector<std::string>;

// Adds a finding unless the manifest says what the input gives.
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

// "0 to 127", or the first of some that do not follow each other.
std::string experts_text(const std::vector<int64_t>& experts) {
  constexpr size_t kMost = 8;
  const auto count = static_cast<int64_t>(experts.size());
  if (count > 1 && experts.back() - experts.front() == count - 1) {
    return fmt::format("{} to {}", experts.front(), experts.back());
  }
  const std::span<const int64_t> shown(experts.data(), std::min(experts.size(), kMost));
  return fmt::format("{}{}", fmt::join(shown, ","), shown.size() < experts.size() ? ",..." : "");
}

// What decides how bytes are made beside layout, target and sizes.
void compare_model(const ModelLayers& input, const Manifest& manifest, Differences differences) {
  differences.check("w13_order", w13_order_name(manifest.order), w13_order_name(input.order));
  differences.check("scale_fill", std::to_integer<int>(manifest.scale_fill),
                    std::to_integer<int>(input.scale_fill));
  differences.check("bias_dtype", dtype_name(manifest.bias_dtype), dtype_name(input.bias_dtype));
}

// The layers that the manifest has.
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

// The manifest's rank as the loader cuts it out of the input. The padded sizes are those of the
// manifest wherever the style's loader pads at all.
RankSlice slice_of_input(const OpenInput& input, const Manifest& manifest,
                         ExpertPlacement placement) {
  const LayerDims padded = manifest.layers.front().loaded.dims;
  SliceOptions slice;
  slice.parallel = manifest.parallel;
  slice.placement = placement;
  slice.backend = manifest.target.backend;
  slice.round_hidden = [&](int64_t) { return padded.hidden_size; };
  slice.round_sizes = [&](LayerDims dims) {
    return LayerDims{dims.num_experts, padded.hidden_size, padded.intermediate_size};
  };
  if (rules_of_blob(manifest).loader.strides_by_checkpoint) {
    slice.generic_stride = GenericStride::kCheckpoint;
  }
  if (input.config) slice.n_group = input.config->n_group;
  const std::vector<RankSlice> ranks = slice_ranks(input.model, common_dims(input.model), slice);
  if (manifest.rank.rank >= static_cast<int64_t>(ranks.size())) {
    throw Error::unsupported(
        fmt::format("rank {} of {}", manifest.rank.rank, manifest.rank.num_ranks));
  }
  return ranks[static_cast<size_t>(manifest.rank.rank)];
}

// Nothing, and a finding, where the input cannot be cut so.
std::optional<RankSlice> find_slice(const OpenInput& input, const Manifest& manifest,
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

void compare_slice(const RankSlice& slice, const Manifest& manifest, Differences differences) {
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

// The planned tensors of a layer against those of the manifest.
void compare_tensors(const ManifestLayer& planned, const ManifestLayer& stored,
                     Differences differences) {
  const auto key = [](const ManifestLayer& layer, size_t i) {
    if (i >= layer.tensors.size()) return std::string("nothing");
    const ManifestTensor& tensor = layer.tensors[i];
    return fmt::format("{} {} {}", tensor.name, dtype_name(tensor.spec.dtype),
                       tensor.spec.shape.to_string());
  };
  for (size_t i = 0; i < std::max(planned.tensors.size(), stored.tensors.size()); ++i) {
    differences.check(fmt::format("layer {}: tensor {}", stored.index, i), key(stored, i),
                      key(planned, i));
  }
}

struct CompareToken {
  JobBuffers buffers;
  Buffer stored;
  std::string finding;
};

// Makes every planned piece again and compares it with the blob's bytes.
class ByteComparison {
 public:
  ByteComparison(Repacker& repacker, const Plan& plan, const std::vector<LayerReader>& readers)
      : repacker_(repacker), plan_(plan), readers_(readers) {}

  void run(const ResourceOptions& resources, Progress& progress, Findings& findings) {
    int64_t cost = 0;
    for (const Job& job : plan_.jobs) cost = std::max(cost, job.cost);
    const int64_t tokens = tokens_for(resources.memory, cost, resources.threads);
    in_flight_.resize(static_cast<size_t>(tokens));
    run_pipeline(static_cast<int64_t>(plan_.jobs.size()), {resources.threads, tokens},
                 {.read = [&](int64_t job,
                              int64_t at) { repacker_.read(job_at(job), token_at(at).buffers); },
                  .work = [&](int64_t job, int64_t at) { compare(job_at(job), token_at(at)); },
                  .write =
                      [&](int64_t, int64_t at) {
                        CompareToken& token = token_at(at);
                        if (!token.finding.empty()) findings.push_back(std::move(token.finding));
                        const ConstBytes made = token.buffers.pieces.front();
                        progress.advance(static_cast<int64_t>(made.size()));
                      }});
  }

 private:
  const Job& job_at(int64_t job) const { return plan_.jobs[static_cast<size_t>(job)]; }
  CompareToken& token_at(int64_t token) { return in_flight_[static_cast<size_t>(token)]; }

  void compare(const Job& job, CompareToken& token) {
    repacker_.work(job, token.buffers);
    const Piece& piece = job.pieces.front();  // one rank at a time: one piece a job
    const PlannedTensor& tensor = plan_.files[piece.file].tensors[piece.tensor];
    const int64_t begin = piece.first_granule * tensor.granule_bytes;
    const MutableBytes stored = token.stored.get(piece.granules * tensor.granule_bytes);
    readers_[piece.file].read(tensor.offset + begin, stored);
    const ConstBytes made = token.buffers.pieces.front();
    token.finding.clear();
    if (!made.empty() && std::memcmp(made.data(), stored.data(), made.size()) != 0) {
      const auto differs = std::ranges::mismatch(made, stored).in1;
      token.finding = fmt::format("{}: byte {} is not the repack of the input", tensor.name,
                                  begin + (differs - made.begin()));
    }
    repacker_.release(job);
  }

  Repacker& repacker_;
  const Plan& plan_;
  const std::vector<LayerReader>& readers_;
  std::vector<CompareToken> in_flight_;
};

// The blob's layout; null where it stops at the loaded one.
const Layout* layout_of(const fs::path& directory, const Manifest& manifest) {
  if (manifest.layout == kLoadedLayoutId) return nullptr;
  const Layout* layout = layout_by_id(manifest.layout);
  if (layout != nullptr) return layout;
  throw Error::input(fmt::format("{}: unknown layout '{}'", directory.string(), manifest.layout));
}

}  // namespace

Findings compare_with_input(const std::shared_ptr<Source>& source, const fs::path& directory,
                            const Manifest& manifest, const VerifyOptions& options,
                            Progress& progress) {
  Findings findings;
  if (manifest.layers.empty()) return findings;
  const std::string place = directory.string();
  const Differences differences(place, findings);
  const Layout* layout = layout_of(directory, manifest);
  OpenInput input =
      open_input(source, options.against, std::string(family_name(manifest.target.family)),
                 rules_of_blob(manifest));
  keep_layers(input.model, manifest);
  compare_model(input.model, manifest, differences);
  compare_layers(input.model, manifest, differences);
  if (!findings.empty()) return findings;
  const std::optional<RankSlice> slice = find_slice(input, manifest, place, findings);
  if (!slice) return findings;
  compare_slice(*slice, manifest, differences);
  if (!findings.empty()) return findings;

  const Plan plan = make_plan(input.model, {*slice}, {.layout = layout, .target = manifest.target});
  std::vector<LayerReader> readers;
  for (size_t file = 0; file < plan.files.size(); ++file) {
    compare_tensors(describe_layer(plan, input.model, file, manifest.compression.zstd),
                    manifest.layers[file], differences);
    readers.emplace_back(directory / manifest.layers[file].file);
  }
  if (!findings.empty()) return findings;
  Repacker repacker(*input.source, input.model, plan, layout, manifest.target);
  ByteComparison(repacker, plan, readers).run(options.resources, progress, findings);
  input.source->check_unchanged();
  return findings;
}

}  // namespace mxfp4
