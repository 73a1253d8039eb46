#include "formats/checkpoint/described_source.hpp"

#include <utility>

#include "lib/core/error.hpp"
#include "lib/load/describe_published.hpp"

namespace mxfp4 {
std::shared_ptr<Source> open_described_source(const Manifest& manifest) {
  SourceContents contents{.kind = "manifest",
                          .attributes = manifest.checkpoint.attributes,
                          .config_json = manifest.checkpoint.config,
                          .origin = origin_of(manifest)};
  for (const ManifestLayer& layer : manifest.layers) {
    if (!layer.published) throw Error::input("does not say how its checkpoint names the experts");
    for (NamedTensor& tensor : published_tensors(layer.prefix, *layer.published)) {
      contents.tensors.push_back({std::move(tensor.name), tensor.spec, std::move(tensor.file), {}});
    }
  }
  return std::make_shared<Source>(std::move(contents));
}

SourceOrigin origin_of(const Manifest& manifest) {
  SourceOrigin origin{.kind = manifest.source.kind,
                      .files = manifest.source.files,
                      .style = manifest.style,
                      .all_layers = manifest.all_layers,
                      .left_out = manifest.checkpoint.left_out};
  for (const ManifestLayer& layer : manifest.layers) {
    if (layer.published) origin.samples.emplace(layer.prefix, layer.published->sample);
  }
  return origin;
}

}  // namespace mxfp4
