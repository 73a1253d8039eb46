// What a conversion will write, computed before any data is read: every file, tensor and byte
// offset, and the list of jobs that fill them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/layer.hpp"
#include "lib/layouts/output.hpp"
#include "lib/load/expert_layer.hpp"
#include "lib/load/slice.hpp"
#include "lib/plan/cut.hpp"
#include "lib/plan/recipe.hpp"

namespace mxfp4 {

// One tensor of an output file.
struct PlannedTensor {
  std::string name;  // "<prefix>.w13_weight"
  TensorSpec spec;
  int64_t offset = 0;  // of the first byte, from the start of the file's data
  int64_t bytes = 0;
  size_t output = 0;  // index into PlannedFile::outputs
  int64_t granules = 0;
  int64_t granule_bytes = 0;
  bool codes = false;  // of weights: an entropy coder saves nothing
};

// One layer of one rank: one file.
struct PlannedFile {
  size_t layer = 0;  // index into ModelLayers::layers
  size_t rank = 0;   // index into Plan::ranks
  Recipe recipe;
  LoadedSpec loaded;                                   // of the recipe
  std::shared_ptr<const std::vector<Output>> outputs;  // shared by layers of equal sizes
  std::array<std::optional<Assembly>, kAllSlots.size()> assemblies;
  std::vector<PlannedTensor> tensors;  // in file order
  int64_t data_bytes = 0;
};

// Some whole granules of one tensor of one file.
struct Piece {
  size_t file = 0;
  size_t tensor = 0;
  int64_t first_granule = 0;
  int64_t granules = 0;
};

// Pieces that are made from the same source bytes, one for each rank that needs them, so that a job
// reads its source once.
struct Job {
  std::vector<Piece> pieces;
  int64_t cost = 0;  // bytes of buffers while the job is in flight, without scratch
};

struct Plan {
  std::vector<RankSlice> ranks;
  std::vector<PlannedFile> files;  // by layer, then rank
  std::vector<Job> jobs;           // a file's pieces come in file order
  int64_t output_bytes = 0;        // of data, headers aside
};

struct PlanOptions {
  const Layout* layout = nullptr;  // null: stop at the loaded layout
  LayoutParameters parameters{};
  // Bytes of output that a job aims for: fewer where not each of `threads` would get several jobs,
  // and at least one granule.
  int64_t job_bytes = kJobBytes;
  int threads = 1;
};

// Throws Error::unsupported when the layout's preconditions do not hold, Error::input on sizes that
// overflow.
[[nodiscard]] Plan make_plan(const ModelLayers& model, std::vector<RankSlice> ranks,
                             const PlanOptions& options);

// The outputs of all files, each once.
[[nodiscard]] std::vector<const Output*> outputs_of(const Plan& plan);

// What a layer's file holds on a rank before the layout runs.
[[nodiscard]] LoadedSpec loaded_spec(const ModelLayers& model, const ExpertLayer& layer,
                                     const RankSlice& rank);

// The outputs of a file that stops at the loaded layout: every slot as it is.
[[nodiscard]] std::vector<Output> loaded_outputs(const LoadedSpec& loaded);

// The tensors of one file in their order: sizes that are multiples of 4096 bytes first, then of 64,
// so that the former start at page boundaries; offsets filled in.
[[nodiscard]] std::vector<PlannedTensor> arrange_tensors(const std::string& prefix,
                                                         const std::vector<Output>& outputs,
                                                         int64_t num_experts);

}  // namespace mxfp4
