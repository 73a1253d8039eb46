#include "lib/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/output.hpp"
#include "lib/layouts/run_output.hpp"
#include "lib/layouts/slot_outputs.hpp"
#include "lib/plan/cut.hpp"
#include "lib/plan/frames.hpp"

namespace mxfp4 {
namespace {

// Layers of a model mostly have equal sizes: their outputs (with row tables) are made once.
class OutputCache {
 public:
  explicit OutputCache(const PlanOptions& options) : options_(options) {}

  std::shared_ptr<const std::vector<Output>> get(const LoadedSpec& loaded) {
    const Key key{loaded.dims.num_experts, loaded.dims.hidden_size, loaded.dims.intermediate_size,
                  loaded.bias, loaded.input_scales};
    auto& entry = made_[key];
    if (!entry) {
      entry = std::make_shared<const std::vector<Output>>(
          options_.layout == nullptr
              ? loaded_outputs(loaded)
              : make_outputs(*options_.layout, {loaded, options_.parameters}));
    }
    return entry;
  }

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t, std::optional<DType>, bool>;
  const PlanOptions& options_;
  std::map<Key, std::shared_ptr<const std::vector<Output>>> made_;
};

PlannedFile plan_file(const ModelLayers& model, size_t layer, const RankSlice& rank,
                      size_t rank_index, const PlanOptions& options, OutputCache& cache) {
  const ExpertLayer& source = model.layers[layer];
  PlannedFile file;
  file.layer = layer;
  file.rank = rank_index;
  file.recipe = recipe_of(model, source, rank, options.layout, options.parameters);
  file.loaded = file.recipe.loaded();
  file.loaded.check();
  file.outputs = cache.get(file.loaded);
  for (Slot slot : kAllSlots) {
    if (source.has(slot)) {
      file.assemblies[static_cast<size_t>(slot)] = make_assembly(model, source, slot, rank);
    }
  }
  file.tensors = arrange_tensors(source.prefix, *file.outputs, file.loaded.dims.num_experts);
  for (const PlannedTensor& tensor : file.tensors) {
    file.data_bytes = checked_add(file.data_bytes, tensor.bytes);
  }
  return file;
}

const Output& output_of(const PlannedFile& file, const Piece& piece) {
  return (*file.outputs)[file.tensors[piece.tensor].output];
}

// Bytes of a piece's slots in the checkpoint. They are read as whole experts, although a rank's
// slice may be a part of each.
int64_t read_cost(const PlannedFile& file, const Piece& piece) {
  const Output& output = output_of(file, piece);
  int64_t expert = 0;
  for (Slot slot : slots_read(output)) {
    const auto& assembly = file.assemblies[static_cast<size_t>(slot)];
    if (assembly) expert += assembly->stored.bytes();
  }
  return piece.granules * output.experts_per_granule * expert;
}

// Bytes of one granule of a piece in the loaded layout.
int64_t loaded_cost(const PlannedFile& file, const Piece& piece) {
  const Output& output = output_of(file, piece);
  int64_t expert = 0;
  for (Slot slot : slots_read(output)) expert += file.loaded.expert(slot).bytes();
  return output.experts_per_granule * expert;
}

// Bytes of a piece's output, and of its compressed frames. Codes are not compressed.
int64_t written_cost(const PlannedFile& file, const Piece& piece) {
  const PlannedTensor& tensor = file.tensors[piece.tensor];
  return (tensor.codes ? 1 : 2) * piece.granules * tensor.granule_bytes;
}

// Buffer bytes of a job: its source bytes are read once, and its pieces made one after another.
int64_t job_cost(const Plan& plan, const Job& job) {
  int64_t written = 0;
  int64_t loaded = 0;
  for (const Piece& piece : job.pieces) {
    const PlannedFile& file = plan.files[piece.file];
    written += written_cost(file, piece);
    loaded = std::max(loaded, loaded_cost(file, piece));
  }
  const Piece& first = job.pieces.front();
  return read_cost(plan.files[first.file], first) + loaded + written;
}

// Bytes of output that a job aims for. Each of several threads gets several jobs, so that all end
// at about the same time.
int64_t job_target(const PlanOptions& options, int64_t output_bytes) {
  constexpr int64_t kJobsPerThread = 8;
  if (options.threads <= 1) return options.job_bytes;
  const int64_t share = output_bytes / (kJobsPerThread * options.threads);
  return std::min(options.job_bytes, std::max(share, kFrameBytes));
}

// All jobs of one tensor: `files` share its source bytes and have equal tensors.
void add_jobs(Plan& plan, const std::vector<size_t>& files, size_t tensor_index,
              int64_t job_bytes) {
  const PlannedTensor& tensor = plan.files[files.front()].tensors[tensor_index];
  const int64_t together = granules_per_frame(tensor.granule_bytes);
  const int64_t wanted = job_bytes / static_cast<int64_t>(files.size());
  for (const UnitRange& range :
       cut_units(tensor.granules, tensor.granule_bytes, together, wanted)) {
    Job job;
    for (size_t file : files) {
      job.pieces.push_back({file, tensor_index, range.first, range.count});
    }
    job.cost = job_cost(plan, job);
    plan.jobs.push_back(std::move(job));
  }
}

// All jobs of files that share their source bytes.
void add_jobs(Plan& plan, const std::vector<size_t>& files, int64_t job_bytes) {
  for (size_t t = 0; t < plan.files[files.front()].tensors.size(); ++t) {
    add_jobs(plan, files, t, job_bytes);
  }
}

bool same_experts(const std::vector<RankSlice>& ranks) {
  return std::ranges::all_of(ranks, [&](const RankSlice& rank) {
    return rank.experts == ranks.front().experts &&
           rank.other_experts == ranks.front().other_experts;
  });
}

}  // namespace

LoadedSpec loaded_spec(const ModelLayers& model, const ExpertLayer& layer, const RankSlice& rank) {
  LoadedSpec loaded;
  loaded.dims = rank.padded;
  loaded.dims.num_experts = std::ssize(rank.experts_of(layer.dims.num_experts));
  if (layer.has(Slot::kW13Bias)) loaded.bias = model.bias_dtype;
  loaded.input_scales = layer.has(Slot::kW13InputScale);
  return loaded;
}

std::vector<Output> loaded_outputs(const LoadedSpec& loaded) {
  std::vector<Output> outputs;
  for (Slot slot : kAllSlots) {
    if (loaded.has(slot)) outputs.push_back(identity_output(loaded, slot));
  }
  return outputs;
}

std::vector<PlannedTensor> arrange_tensors(const std::string& prefix,
                                           const std::vector<Output>& outputs,
                                           int64_t num_experts) {
  std::vector<PlannedTensor> tensors;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Output& output = outputs[i];
    PlannedTensor tensor;
    tensor.name = fmt::format("{}.{}", prefix, output.name);
    tensor.spec = output.spec;
    tensor.bytes = output.spec.bytes();
    tensor.output = i;
    tensor.codes = output.slot == Slot::kW13Weight || output.slot == Slot::kW2Weight;
    tensor.granules = num_experts / std::max<int64_t>(1, output.experts_per_granule);
    tensor.granule_bytes = tensor.granules > 0 ? tensor.bytes / tensor.granules : 0;
    tensors.push_back(std::move(tensor));
  }
  const auto alignment_class = [](const PlannedTensor& tensor) {
    return tensor.bytes % 4096 == 0 ? 0 : tensor.bytes % 64 == 0 ? 1 : 2;
  };
  std::ranges::stable_sort(tensors, {}, alignment_class);
  int64_t offset = 0;
  for (PlannedTensor& tensor : tensors) {
    tensor.offset = offset;
    offset = checked_add(offset, tensor.bytes);
  }
  return tensors;
}

Plan make_plan(const ModelLayers& model, std::vector<RankSlice> ranks, const PlanOptions& options) {
  Plan plan;
  plan.ranks = std::move(ranks);
  OutputCache cache(options);
  // Tensor-parallel ranks cut the same experts, so one read serves all ranks; expert-parallel
  // ranks share nothing, and each is written on its own.
  const bool shared = same_experts(plan.ranks);
  std::vector<std::vector<size_t>> files_of_layers;
  for (size_t layer = 0; layer < model.layers.size(); ++layer) {
    std::vector<size_t> files;
    in_context(model.layers[layer].prefix, [&] {
      for (size_t rank = 0; rank < plan.ranks.size(); ++rank) {
        files.push_back(plan.files.size());
        const PlannedFile& file = plan.files.emplace_back(
            plan_file(model, layer, plan.ranks[rank], rank, options, cache));
        plan.output_bytes = checked_add(plan.output_bytes, file.data_bytes);
      }
    });
    files_of_layers.push_back(std::move(files));
  }
  const int64_t job_bytes = job_target(options, plan.output_bytes);
  for (const std::vector<size_t>& files : files_of_layers) {
    if (shared) {
      add_jobs(plan, files, job_bytes);
    } else {
      for (size_t file : files) add_jobs(plan, {file}, job_bytes);
    }
  }
  return plan;
}

std::vector<const Output*> outputs_of(const Plan& plan) {
  std::set<const std::vector<Output>*> seen;  // layers of equal sizes share them
  std::vector<const Output*> outputs;
  for (const PlannedFile& file : plan.files) {
    if (!seen.insert(file.outputs.get()).second) continue;
    for (const Output& output : *file.outputs) outputs.push_back(&output);
  }
  return outputs;
}

}  // namespace mxfp4
