// Checksums of a manifest that are not known yet: of what is only planned, or made without
// being written.
#pragma once

#include <string_view>

#include "formats/blob/manifest.hpp"

namespace mxfp4 {

// In place of such a checksum.
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

}  // namespace mxfp4
