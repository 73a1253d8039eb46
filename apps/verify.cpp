// verify: checksums, sizes, index and manifest; with --against, every byte made anew and compared.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "apps/commands.hpp"
#include "apps/session.hpp"
#include "formats/blob_check.hpp"
#include "formats/blob_writer.hpp"
#include "formats/lost_pages.hpp"
#include "formats/repacker.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/pipeline.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

using Findings = std::vector<std::string>;

int64_t stored_bytes(const std::vector<Manifest>& manifests) {
  int64_t total = 0;
  for (const Manifest& manifest : manifests) {
    for (const ManifestLayer& layer : manifest.layers) total += layer.size;
  }
  return total;
}

// The planned tensors of a layer against those of the manifest.
void compare_plan(const ManifestLayer& planned, const ManifestLayer& stored, Findings& findings) {
  const auto key = [](const ManifestTensor& tensor) {
    return fmt::format("{} {} {}", tensor.name, dtype_name(tensor.spec.dtype),
                       tensor.spec.shape.to_string());
  };
  for (size_t i = 0; i < std::max(planned.tensors.size(), stored.tensors.size()); ++i) {
    const std::string want = i < planned.tensors.size() ? key(planned.tensors[i]) : "nothing";
    const std::string have = i < stored.tensors.size() ? key(stored.tensors[i]) : "nothing";
    if (want != have) findings.push_back(fmt::format("{} where {} belongs", have, want));
  }
}

struct CompareToken {
  JobBuffers buffers;
  Buffer stored;
};

// Makes every planned piece again and compares it with the blob's bytes.
void compare_bytes(Repacker& repacker, const Plan& plan, const std::vector<LayerReader>& readers,
                   const ResourceOptions& resources, Progress& progress, Findings& findings) {
  int64_t cost = 0;
  for (const Job& job : plan.jobs) cost = std::max(cost, job.cost);
  const int64_t tokens = tokens_for(resources.memory, cost, resources.threads);
  std::vector<CompareToken> in_flight(static_cast<size_t>(tokens));
  std::mutex mutex;
  const auto compare = [&](const Job& job, CompareToken& token) {
    const Piece& piece = job.pieces.front();  // one rank at a time: one piece a job
    const PlannedTensor& tensor = plan.files[piece.file].tensors[piece.tensor];
    const MutableBytes stored = token.stored.get(piece.granules * tensor.granule_bytes);
    readers[piece.file].read(tensor.offset + piece.first_granule * tensor.granule_bytes, stored);
    const ConstBytes made = token.buffers.pieces.front();
    if (made.empty() || std::memcmp(made.data(), stored.data(), made.size()) == 0) return;
    const auto differs = std::ranges::mismatch(made, stored).in1;
    const int64_t at = piece.first_granule * tensor.granule_bytes + (differs - made.begin());
    const std::scoped_lock lock(mutex);
    findings.push_back(fmt::format("{}: byte {} is not the repack of the input", tensor.name, at));
  };
  run_pipeline(static_cast<int64_t>(plan.jobs.size()), {resources.threads, tokens},
               {.read =
                    [&](int64_t job, int64_t token) {
                      repacker.read(plan.jobs[static_cast<size_t>(job)],
                                    in_flight[static_cast<size_t>(token)].buffers);
                    },
                .work =
                    [&](int64_t job, int64_t at) {
                      CompareToken& token = in_flight[static_cast<size_t>(at)];
                      repacker.work(plan.jobs[static_cast<size_t>(job)], token.buffers);
                      compare(plan.jobs[static_cast<size_t>(job)], token);
                      repacker.release(plan.jobs[static_cast<size_t>(job)], token.buffers);
                    },
                .write =
                    [&](int64_t, int64_t at) {
                      const JobBuffers& made = in_flight[static_cast<size_t>(at)].buffers;
                      progress.advance(static_cast<int64_t>(made.pieces.front().size()));
                    }});
}

// The slice that the manifest states, with the padded sizes of its layers.
RankSlice stated_slice(const Manifest& manifest) {
  RankSlice slice = manifest.rank;
  slice.padded = manifest.layers.front().loaded.dims;
  return slice;
}

// What decides how bytes are made beside layout, target and sizes.
void compare_model(const ModelLayers& input, const Manifest& manifest, Findings& findings) {
  const auto differs = [&](std::string_view what, auto in_manifest, auto in_input) {
    if (in_manifest == in_input) return;
    findings.push_back(
        fmt::format("{}: {} in the manifest, the input has {}", what, in_manifest, in_input));
  };
  differs("w13_order", w13_order_name(manifest.order), w13_order_name(input.order));
  differs("scale_fill", std::to_integer<int>(manifest.scale_fill),
          std::to_integer<int>(input.scale_fill));
  differs("bias_dtype", dtype_name(manifest.bias_dtype), dtype_name(input.bias_dtype));
}

void check_against(const std::shared_ptr<Source>& source, const fs::path& directory,
                   const Manifest& manifest, const VerifyOptions& options, Progress& progress,
                   Findings& findings) {
  if (manifest.layers.empty()) return;
  OpenInput input =
      open_input(source, options.against, std::string(family_name(manifest.target.family)),
                 rules_of_blob(manifest));
  std::erase_if(input.model.layers, [&](const ExpertLayer& layer) {
    return !manifest.all_layers &&
           std::ranges::find(manifest.layers, layer.index, &ManifestLayer::index) ==
               manifest.layers.end();
  });
  if (input.model.layers.size() != manifest.layers.size()) {
    findings.push_back(fmt::format("{}: {} layers, the input has {}", directory.string(),
                                   manifest.layers.size(), input.model.layers.size()));
    return;
  }
  compare_model(input.model, manifest, findings);
  const Layout* layout = nullptr;
  if (manifest.layout != kLoadedLayoutId) {
    layout = layout_by_id(manifest.layout);
    if (layout == nullptr) {
      throw Error::input(
          fmt::format("{}: unknown layout '{}'", directory.string(), manifest.layout));
    }
  }
  const Plan plan = make_plan(input.model, {stated_slice(manifest)},
                              {.layout = layout, .target = manifest.target});
  std::vector<LayerReader> readers;
  for (size_t file = 0; file < plan.files.size(); ++file) {
    compare_plan(describe_layer(plan, input.model, file, manifest.compression.zstd),
                 manifest.layers[file], findings);
    readers.emplace_back(directory / manifest.layers[file].file);
  }
  if (!findings.empty()) return;
  Repacker repacker(*input.source, input.model, plan, layout, manifest.target);
  compare_bytes(repacker, plan, readers, options.resources, progress, findings);
  input.source->check_unchanged();
}

// Everything about one rank's directory. `source` is null without --against.
void verify_blob(const std::shared_ptr<Source>& source, const fs::path& directory,
                 const Manifest& manifest, const VerifyOptions& options, Progress& progress,
                 Findings& findings) {
  for (std::string& finding : check_blob_files(directory, manifest)) {
    findings.push_back(std::move(finding));
  }
  for (std::string& finding : check_layer_files(directory, manifest, options.resources.threads,
                                                [&](int64_t bytes) { progress.advance(bytes); })) {
    findings.push_back(std::move(finding));
  }
  if (findings.empty() && source != nullptr) {
    check_against(source, directory, manifest, options, progress, findings);
  }
}

// The model directory around the blob, which all ranks share.
void check_rest(const std::vector<fs::path>& blobs, const std::vector<Manifest>& manifests,
                Findings& findings) {
  if (blobs.empty()) return;
  const fs::path model = model_directory_of(blobs.front());
  if (model.empty()) return;
  for (std::string& finding : check_rest_files(model, manifests.front())) {
    findings.push_back(std::move(finding));
  }
}

// What is gone through: every stored byte, and with --against every decoded one too.
int64_t bytes_to_read(const std::vector<Manifest>& manifests, const VerifyOptions& options) {
  int64_t total = stored_bytes(manifests);
  if (options.against.path.empty()) return total;
  for (const Manifest& manifest : manifests) {
    for (const ManifestLayer& layer : manifest.layers) {
      for (const ManifestTensor& tensor : layer.tensors) total += tensor.spec.bytes();
    }
  }
  return total;
}

int report(const VerifyOptions& options, const std::vector<Manifest>& manifests,
           const Findings& findings, double seconds, const Console& console) {
  size_t layers = 0;
  for (const Manifest& manifest : manifests) layers += manifest.layers.size();
  if (console.json()) {
    nlohmann::ordered_json json;
    json["blob"] = options.blob.string();
    json["holds"] = findings.empty();
    json["ranks"] = manifests.size();
    json["layer_files"] = layers;
    json["bytes"] = stored_bytes(manifests);
    json["findings"] = findings;
    console.result(json.dump(2) + "\n");
  } else if (findings.empty()) {
    const std::string out = shell_word(options.blob.string());
    const std::string against = options.against.path.string();
    console.say(fmt::format(
        "{}: ok, {} layer file{}, {}{}", out, layers, layers == 1 ? "" : "s",
        pace(stored_bytes(manifests), bytes_to_read(manifests, options), seconds),
        against.empty() ? fmt::format("; next: mxfp4-repack verify {} --against INPUT", out)
                        : ", every byte is the repack of " + shell_word(against)));
  } else {
    for (const std::string& finding : findings) console.result(finding + "\n");
    console.result(fmt::format("{}: {} difference{}\n", options.blob.string(), findings.size(),
                               findings.size() == 1 ? "" : "s"));
  }
  return findings.empty() ? kOk : kDifference;
}

}  // namespace

int run_verify(const VerifyOptions& options, const Console& console) {
  const std::vector<fs::path> blobs = find_blobs(options.blob);
  if (blobs.empty()) {
    throw Error::input(
        fmt::format("{}: no {} here, so no complete blob", options.blob.string(), kManifestName));
  }
  Findings findings;
  std::vector<Manifest> manifests;
  std::vector<fs::path> readable;
  for (const fs::path& blob : blobs) {
    try {
      manifests.push_back(read_manifest(blob));
      readable.push_back(blob);
    } catch (const Error& error) {
      findings.emplace_back(error.what());
    }
  }
  // Before there are threads: a container may be opened in a process of its own (isolated.hpp).
  std::shared_ptr<Source> source;
  if (!options.against.path.empty()) source = open_source(options.against.path);
  Progress progress(console, bytes_to_read(manifests, options));
  check_rest(readable, manifests, findings);
  for (size_t i = 0; i < readable.size(); ++i) {
    verify_blob(source, readable[i], manifests[i], options, progress, findings);
  }
  progress.finish();
  check_lost_pages();
  return report(options, manifests, findings, progress.seconds(), console);
}

}  // namespace mxfp4
