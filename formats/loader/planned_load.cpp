#include "formats/loader/planned_load.hpp"

#include <fmt/format.h>

#include <utility>

#include "formats/blob/planned.hpp"
#include "formats/checkpoint/safetensors_source.hpp"
#include "formats/conversion/repack.hpp"
#include "formats/conversion/source_sample.hpp"
#include "formats/decision/decide.hpp"
#include "formats/decision/plan_of_manifest.hpp"
#include "formats/decision/recipes.hpp"
#include "formats/decision/request_json.hpp"
#include "formats/json/json_fields.hpp"
#include "formats/json/strict_json.hpp"
#include "formats/os/input_fault.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

Manifest read_conversion(std::string_view text) {
  const nlohmann::json json = parse_strict_json(text);
  Manifest manifest = manifest_from_json(JsonFields(json));
  if (manifest.layers.empty()) throw Error::input("layers: none is named");
  return manifest;
}

// A manifest of plain files: what is made is not compressed.
void describe_plain(Manifest& manifest) {
  manifest.compression = {.zstd = false};
  for (ManifestLayer& layer : manifest.layers) {
    layer.file = layer_file_name(layer.index, false);
    layer.xxh3_128 = kNoChecksum;
  }
  manifest.rest.clear();
}

// The manifest's plan for a checkpoint whose style is found as `convert` finds it. Where that gives
// another style than the manifest's, or none, a flag gave the manifest's.
ManifestPlan plan_for(const std::shared_ptr<PositionedSource>& source,
                      const std::filesystem::path& path, const Manifest& manifest) {
  CheckpointOptions options;
  options.path = path;
  try {
    ManifestPlan found = plan_of_manifest(source, options, "conversion", manifest);
    if (style_name(found.input.model.style) == manifest.style) return found;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUsage) throw;
  }
  options.style = style_from_name(manifest.style);
  return plan_of_manifest(source, options, "conversion", manifest);
}

}  // namespace

PlannedLoad plan_load(const std::filesystem::path& checkpoint, std::string_view conversion) {
  PlannedLoad load;
  load.manifest = in_context("conversion", [&] { return read_conversion(conversion); });
  describe_plain(load.manifest);
  load.source = open_safetensors(checkpoint);
  in_context(checkpoint.string(), [&] {
    if (const auto differs = checkpoint_difference(load.manifest, *load.source)) {
      throw InputFault(Fault::kMismatch,
                       fmt::format("is not the conversion's checkpoint: {}", *differs));
    }
  });
  ManifestPlan made = plan_for(load.source, checkpoint, load.manifest);
  if (!made.findings.empty()) {
    throw Error::input(fmt::format("{}: {}", checkpoint.string(), made.findings.front()));
  }
  load.made = std::move(made);
  return load;
}

PlannedLoad plan_load_for(const std::filesystem::path& checkpoint, std::string_view deployment) {
  PlannedLoad load;
  auto [request, options] = parse_checkpoint_request(deployment);
  load.source = open_safetensors(checkpoint);
  options.path = checkpoint;
  OpenedCheckpoint input = open_checkpoint(load.source, options, *request.rules);
  const Conversion conversion = decide_conversion(request, &input);
  require_conversion(conversion);
  RepackOptions repack;
  repack.compression.zstd = false;
  repack.asked = request_text(request, options.style);
  RepackPlan planned = plan_repack(input, conversion.ranks, decided_manifest(conversion), repack);
  load.manifest = std::move(planned.manifests.front());
  fill_checksums(load.manifest);
  load.made = {std::move(input), planned.layout, std::move(planned.plan)};
  return load;
}

void require_same_checkpoint(const std::filesystem::path& checkpoint, std::string_view conversion) {
  const Manifest manifest = in_context("conversion", [&] { return read_conversion(conversion); });
  in_context(checkpoint.string(), [&] {
    if (!has_samples(manifest)) {
      throw InputFault(
          Fault::kMismatch,
          "cannot be compared: the blob says nothing of its checkpoint's bytes; an older "
          "mxfp4-repack wrote it");
    }
    const auto source = open_safetensors(checkpoint);
    if (const auto differs = checkpoint_difference(manifest, *source)) {
      throw InputFault(Fault::kMismatch, fmt::format("is not the blob's checkpoint: {}", *differs));
    }
  });
}

}  // namespace mxfp4
