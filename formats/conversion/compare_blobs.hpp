// Decides by two blobs' manifests whether they hold the same tensors in the same layout.
#pragma once

#include <optional>
#include <string>

#include "formats/output/given_path.hpp"

namespace mxfp4 {

// The first difference, with both values as text.
struct BlobDifference {
  std::string place;  // "rank 1", "model.layers.3.mlp.experts.w13_weight"; empty: of the whole blob
  std::string what;   // "layout", "element [0,5,7]"
  std::string first;
  std::string second;
};

// What differs; empty: the same layout and bytes. Compares facts, causes before their consequences, then the checksums of all tensors, and reads
// only the first tensor that differs. Throws Error::input, naming the file, if that layer's file
// does not hold what its manifest says.
[[nodiscard]] std::optional<BlobDifference> compare_blobs(const BlobRanks& first,
                                                          const BlobRanks& second);

}  // namespace mxfp4
