// Whether two blobs hold the same tensors in the same layout, byte for byte.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "formats/conversion/given_path.hpp"
#include "formats/conversion/run_limits.hpp"

namespace mxfp4 {

// The first thing that is not the same, with both values as text.
struct BlobDifference {
  std::string place;  // "rank 1", "model.layers.3.mlp.experts.w13_weight"; empty: of the whole blob
  std::string what;   // "layout", "element [0, 5, 7]"
  std::string first;
  std::string second;
};

struct BlobComparison {
  std::optional<BlobDifference> difference;  // empty: the same layout and bytes
  // Facts of the manifests that no kernel sees, such as the revision: "<what>: <first>, <second>".
  std::vector<std::string> notes;
};

// Facts of the manifests first, in the order in which they decide the bytes, then the tensors of
// every rank in the order of the first blob's files, until the first difference: what lies behind
// it is not read. The answer is the same for every number of threads. hooks.progress is told the
// bytes of both. Throws Error::input, naming the file, when one of what is read does not hold what
// its manifest says.
[[nodiscard]] BlobComparison compare_blobs(const BlobRanks& first, const BlobRanks& second,
                                           const RunLimits& limits, const RunHooks& hooks);

// What compare_blobs reads when all is the same: the tensors of both.
[[nodiscard]] int64_t bytes_to_compare(const BlobRanks& first, const BlobRanks& second);

}  // namespace mxfp4
