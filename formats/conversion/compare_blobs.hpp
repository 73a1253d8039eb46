// Decides whether two blobs hold the same tensors in the same layout, byte for byte.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "formats/conversion/run_limits.hpp"
#include "formats/decision/given_path.hpp"

namespace mxfp4 {

// The first difference, with both values as text.
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

// Compares facts of the manifests, causes before their consequences, then the tensors of every rank
// in the order of the first blob's files. Stops at the first difference. The answer is the same for
// every number of threads. hooks.progress gets the bytes of both blobs. Throws Error::input, naming
// the file, if a file that is read does not hold what its manifest says.
[[nodiscard]] BlobComparison compare_blobs(const BlobRanks& first, const BlobRanks& second,
                                           const RunLimits& limits, const RunHooks& hooks);

// Bytes that compare_blobs reads if the blobs are equal: all tensors of both.
[[nodiscard]] int64_t bytes_to_compare(const BlobRanks& first, const BlobRanks& second);

}  // namespace mxfp4
