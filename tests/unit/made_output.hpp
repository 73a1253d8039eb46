// Directories as conversions leave them that read no input: complete, or cut off behind the first
// layer file.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/blob/blob_writer.hpp"
#include "formats/blob/layout_facts.hpp"
#include "formats/blob/planned.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/output/conversion_output.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4::test {

// The input of conversions that do not read it.
class UnreadSource : public Source {
 public:
  explicit UnreadSource(int64_t mtime_ns)
      : Source({.kind = "unread", .files = {{.path = "x", .size = 1, .mtime_ns = mtime_ns}}}) {}
};

struct OutRun {
  std::string arch = "sm90";  // the flag that decides the plan
  std::string model = "one";  // of the input: decides the plan without a flag
  int64_t mtime_ns = 1;       // of the input
  std::vector<int64_t> layers{0, 1};
  std::vector<int64_t> ranks{};  // of two; empty: the only one
  std::optional<Shard> shard{};
  bool include_rest = false;
  bool force = false;
};

// A layer file of zeros.
inline std::string layer_bytes_of(const Manifest& manifest, const ManifestLayer& layer) {
  std::string bytes = layer_header(manifest, layer);
  for (const ManifestTensor& tensor : layer.tensors) {
    bytes.append(static_cast<size_t>(tensor.spec.bytes()), '\0');
  }
  return bytes;
}

inline std::vector<std::string> tensor_sums(const ManifestLayer& layer) {
  std::vector<std::string> sums;
  for (const ManifestTensor& tensor : layer.tensors) sums.push_back(tensor.xxh3_128);
  return sums;
}

// With checksums; of a shard, its layers only.
inline Manifest written_manifest(const OutRun& run, int64_t rank, int64_t num_ranks) {
  Manifest manifest;
  manifest.tool_version = "1.0";
  manifest.revision = "some-revision";
  manifest.layout = "identity";
  manifest.kernel_library = kernel_library_of(*layout_of(manifest));
  manifest.decision.backend = Backend::MARLIN;
  manifest.target.backend = Backend::MARLIN;
  manifest.target.arch = run.arch;
  const int64_t width = 64 / num_ranks;
  manifest.rank.rank = manifest.rank.tp_rank = rank;
  manifest.rank.num_ranks = manifest.rank.tp_size = num_ranks;
  manifest.parallel.tp_size = num_ranks;
  manifest.style = "gpt_oss";
  manifest.compression.zstd = false;
  manifest.source.model_type = run.model;
  manifest.source.files.push_back({"x", 1});
  for (const int64_t index : run.layers) {
    if (run.shard && index % run.shard->count != run.shard->index) continue;
    ManifestLayer layer;
    layer.index = index;
    layer.prefix = fmt::format("layers.{}", index);
    layer.file = layer_file_name(index, false);
    layer.recipe.layout = manifest.layout;
    layer.recipe.experts = {0, 1};
    layer.recipe.hidden_size = layer.recipe.padded_hidden_size = 64;
    layer.recipe.intermediate_begin = rank * width;
    layer.recipe.intermediate_end = (rank + 1) * width;
    layer.recipe.padded_intermediate_size = width;
    const std::vector<Output> outputs = outputs_of(manifest, layer);
    for (const PlannedTensor& tensor : arrange_tensors(layer.prefix, outputs, 2)) {
      const std::string zeros(static_cast<size_t>(tensor.spec.bytes()), '\0');
      layer.tensors.push_back(
          {tensor.name, tensor.spec, checksum_of(zeros), outputs[tensor.output].storage});
    }
    layer.size = std::ssize(layer_bytes_of(manifest, layer));
    layer.xxh3_128 = checksum_of(layer_bytes_of(manifest, layer));
    manifest.layers.push_back(layer);
  }
  return manifest;
}

inline std::vector<Manifest> written_manifests(const OutRun& run) {
  if (run.ranks.empty()) return {written_manifest(run, 0, 1)};
  std::vector<Manifest> manifests;
  for (const int64_t rank : run.ranks) manifests.push_back(written_manifest(run, rank, 2));
  return manifests;
}

inline std::vector<Manifest> planned_of(OutRun run) {
  run.shard.reset();
  std::vector<Manifest> planned;
  for (Manifest& manifest : written_manifests(run)) {
    planned.push_back(without_data(std::move(manifest)));
  }
  return planned;
}

inline OutputRequest request_of(const OutRun& run, const std::filesystem::path& out) {
  return {.output = out,
          .input = "input",
          .include_rest = run.include_rest,
          .force = run.force,
          .shard = run.shard,
          .between = {}};
}

// Runs a conversion into OUT. Without `commit` it is cut off behind its first layer file.
inline void run_into(const std::filesystem::path& out, const OutRun& run, bool commit) {
  ConversionOutput output(request_of(run, out), planned_of(run), UnreadSource(run.mtime_ns));
  const std::vector<Manifest> manifests = written_manifests(run);
  for (const Manifest& manifest : manifests) {
    (void)output.blob().folder(rank_directory(manifest.rank));
    for (const ManifestLayer& layer : manifest.layers) {
      const std::string name = name_in_blob(manifest.rank, layer.file);
      if (output.keep_layer(name, manifest, layer, 1)) continue;
      output.finished({name, layer.size, layer.xxh3_128, tensor_sums(layer)}, {});
      std::ofstream(output.blob().path() / name) << layer_bytes_of(manifest, layer);
      if (!commit) return;
    }
  }
  output.commit({});
}
inline void complete(const std::filesystem::path& out, const OutRun& run) {
  run_into(out, run, true);
}
inline void cut_off(const std::filesystem::path& out, const OutRun& run) {
  run_into(out, run, false);
}
}  // namespace mxfp4::test
