#include "formats/blob/planned.hpp"

#include <span>

#include "formats/checksum/checksum.hpp"

namespace mxfp4 {

Manifest without_data(Manifest manifest) {
  manifest.warnings.clear();
  for (ManifestFile& file : manifest.rest) {
    file.size = 0;
    file.xxh3_128 = kNoChecksum;
  }
  for (ManifestLayer& layer : manifest.layers) {
    layer.size = 0;
    layer.xxh3_128 = kNoChecksum;
    for (ManifestTensor& tensor : layer.tensors) tensor.xxh3_128 = kNoChecksum;
  }
  return manifest;
}

std::string plan_identity(const std::vector<Manifest>& planned) {
  Checksum sum;
  for (const Manifest& manifest : planned) {
    const std::string text = write_manifest(without_data(manifest));
    sum.update(std::as_bytes(std::span(text)));
  }
  return sum.hex();
}

}  // namespace mxfp4
