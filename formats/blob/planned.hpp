// Manifests of what is only planned: without what depends on the data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/blob/manifest.hpp"

namespace mxfp4 {

// In place of a checksum that is not known: of what is planned, or made without being written.
inline constexpr std::string_view kNoChecksum = "00000000000000000000000000000000";

// Puts kNoChecksum where layers and tensors have an empty checksum.
inline void fill_checksums(Manifest& manifest) {
  for (ManifestLayer& layer : manifest.layers) {
    if (layer.xxh3_128.empty()) layer.xxh3_128 = kNoChecksum;
    for (ManifestTensor& tensor : layer.tensors) {
      if (tensor.xxh3_128.empty()) tensor.xxh3_128 = kNoChecksum;
    }
  }
}

// The manifest without what depends on the data: checksums, sizes of files, warnings.
[[nodiscard]] Manifest without_data(Manifest manifest);

// XXH3-128 of everything that the manifests of a plan will say and that does not depend on the
// data: equal for equal plans.
[[nodiscard]] std::string plan_identity(const std::vector<Manifest>& planned);

}  // namespace mxfp4
