#include "lib/plan/shard.hpp"

#include <algorithm>
#include <numeric>

namespace mxfp4 {

std::vector<int64_t> assign_shards(std::span<const int64_t> layer_bytes, int64_t shards) {
  std::vector<size_t> order(layer_bytes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](size_t layer) { return layer_bytes[layer]; });
  // Shards that get nothing need no place in the table, however many were asked for.
  const size_t used =
      std::min(static_cast<size_t>(shards), std::max<size_t>(1, layer_bytes.size()));
  std::vector<int64_t> load(used, 0);
  std::vector<int64_t> layers(used, 0);
  std::vector<int64_t> assigned(layer_bytes.size());
  for (size_t layer : order) {
    size_t lightest = 0;
    for (size_t shard = 1; shard < used; ++shard) {
      const bool lighter = load[shard] < load[lightest] ||
                           (load[shard] == load[lightest] && layers[shard] < layers[lightest]);
      if (lighter) lightest = shard;
    }
    assigned[layer] = static_cast<int64_t>(lightest);
    load[lightest] += layer_bytes[layer];
    ++layers[lightest];
  }
  return assigned;
}

std::vector<bool> files_of_shard(const Plan& plan, const Shard& shard) {
  std::vector<int64_t> layer_bytes;
  for (const PlannedFile& file : plan.files) {
    if (file.layer >= layer_bytes.size()) layer_bytes.resize(file.layer + 1, 0);
    layer_bytes[file.layer] += file.data_bytes;
  }
  const std::vector<int64_t> assigned = assign_shards(layer_bytes, shard.count);
  std::vector<bool> wanted;
  for (const PlannedFile& file : plan.files) wanted.push_back(assigned[file.layer] == shard.index);
  return wanted;
}

void keep_jobs(Plan& plan, const std::vector<bool>& wanted) {
  for (Job& job : plan.jobs) {
    std::erase_if(job.pieces, [&](const Piece& piece) { return !wanted[piece.file]; });
  }
  std::erase_if(plan.jobs, [](const Job& job) { return job.pieces.empty(); });
}

int64_t job_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const Job& job : plan.jobs) {
    for (const Piece& piece : job.pieces) {
      bytes += piece.granules * plan.files[piece.file].tensors[piece.tensor].granule_bytes;
    }
  }
  return bytes;
}

}  // namespace mxfp4
