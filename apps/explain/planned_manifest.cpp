#include "apps/explain/planned_manifest.hpp"

#include "formats/blob/planned_checksums.hpp"
#include "formats/conversion/repack.hpp"

namespace mxfp4 {

Manifest planned_manifest(const OpenedCheckpoint& checkpoint, const Conversion& conversion) {
  RepackOptions options;
  options.compression.zstd = false;
  Manifest manifest = plan_repack(checkpoint, conversion, options).manifests.front();
  fill_checksums(manifest);
  return manifest;
}

}  // namespace mxfp4
