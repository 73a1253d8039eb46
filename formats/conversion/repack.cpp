#include "formats/conversion/repack.hpp"

#include <algorithm>
#include <climits>
#include <utility>

#include "formats/blob/layout_facts.hpp"
#include "formats/conversion/memory_budget.hpp"
#include "formats/conversion/model_directory.hpp"
#include "formats/conversion/source_sample.hpp"
#include "formats/remote/files_at.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/job_pipeline.hpp"
#include "lib/exec/pool.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/output.hpp"
#include "lib/load/loaded_style.hpp"
#include "lib/plan/frames.hpp"
#include "lib/plan/job_order.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// Buffers of one job in flight.
struct InFlight {
  JobBuffers buffers;
  std::vector<OutgoingPiece> outgoing;  // by piece of the job
};

// What makes the blob an input of convert.
CheckpointFacts checkpoint_facts(const OpenedCheckpoint& checkpoint) {
  CheckpointFacts facts;
  facts.config = checkpoint.config_text;
  facts.left_out = checkpoint.model.left_out;
  if (checkpoint.model.style != Style::kLoaded) return facts;
  facts.attributes = binding_attributes(checkpoint.source->attributes(), {});
  facts.attributes.erase("layout");  // of the container, which the blob is not
  return facts;
}

// A blob that is made from a blob names the checkpoint, not the other blob.
void name_source(const Source& source, SourceSummary& summary) {
  if (const SourceOrigin* origin = source.origin()) {
    summary.kind = origin->kind;
    summary.files = origin->files;
    return;
  }
  summary.kind = source.kind();
  for (const FileStatus& file : source.files()) {
    summary.files.push_back({file.path.filename().string(), file.size, sha256_at(file.path)});
  }
}

// Completes what a decision knows of the manifests by what is the same for every rank.
Manifest describe(const OpenedCheckpoint& checkpoint, Manifest manifest,
                  const RepackOptions& options) {
  manifest.tool_version = MXFP4_REPACK_VERSION;
  manifest.asked = options.asked;
  manifest.style = style_name(checkpoint.model.style);
  manifest.loader = checkpoint.model.loader;
  manifest.all_layers = !checkpoint.layers_chosen;
  manifest.checkpoint = checkpoint_facts(checkpoint);
  if (checkpoint.config) manifest.source.model_type = checkpoint.config->model_type;
  if (checkpoint.model.style == Style::kCompressedTensors) {
    manifest.source.activation = checkpoint.model.activation;
  }
  name_source(*checkpoint.source, manifest.source);
  manifest.compression = options.compression;
  if (manifest.compression.zstd) manifest.compression.libzstd = zstd_library_version();
  manifest.warnings = checkpoint.model.warnings;
  return manifest;
}

std::vector<FileStatus> copied_files(const RestPlan& rest) {
  std::vector<FileStatus> copied;
  for (const SideFile& file : rest.side) {
    if (!file.from.empty()) copied.push_back(file.seen);
  }
  return copied;
}

std::vector<fs::path> inputs_of(const Source& source, const RestPlan& rest) {
  std::vector<fs::path> inputs;
  for (const FileStatus& file : source.files()) inputs.push_back(file.path);
  for (const SideFile& file : rest.side) {
    if (!file.from.empty()) inputs.push_back(file.from);
  }
  return inputs;
}

// The memory of a run. A job's bytes include its worker's encoder, and what its input is made from.
RunMemory memory_of(const Plan& plan, const Compression& compression, const Source& source) {
  RunMemory memory{.outputs = outputs_of(plan), .direction = Direction::kForward};
  for (const Job& job : plan.jobs) memory.job_bytes = std::max(memory.job_bytes, job.cost);
  memory.job_bytes += source.read_bytes();
  if (compression.zstd) memory.job_bytes += encoder_bytes(compression.level, kFrameBytes);
  return memory;
}

// The wanted files without those that are `finished`(index in the plan, name in the blob,
// manifest's entry).
template <class Finished>
std::vector<bool> left_over(const RepackPlan& plan, const Finished& finished) {
  std::vector<bool> left = plan.wanted;
  std::vector<size_t> next(plan.plan.ranks.size(), 0);
  for (size_t file = 0; file < plan.plan.files.size(); ++file) {
    const size_t rank = plan.plan.files[file].rank;
    const ManifestLayer& layer = plan.manifests[rank].layers[next[rank]++];
    const std::string name = name_in_blob(plan.plan.ranks[rank], layer.file);
    if (left[file] && finished(file, name, layer)) left[file] = false;
  }
  return left;
}

// A file of the model directory, which lies around the blob's folder, as the journal names it.
std::string in_blob(const std::string& name) { return "../" + name; }

}  // namespace

int64_t RepackPlan::files() const { return std::ranges::count(wanted, true); }

int64_t RepackPlan::data_bytes() const { return job_bytes(plan); }

RepackPlan plan_repack(OpenedCheckpoint& checkpoint, std::vector<RankSlice> ranks, Manifest decided,
                       const RepackOptions& options) {
  RepackPlan out;
  Source& source = *checkpoint.source;
  if (source.origin() == nullptr) {
    take_samples(checkpoint.model, source);
  }
  out.layout = layout_of(decided);
  out.plan = make_plan(checkpoint.model, std::move(ranks),
                       {.layout = out.layout,
                        .parameters = layout_parameters(decided.target),
                        .threads = options.limits.threads});
  out.common = describe(checkpoint, std::move(decided), options);
  if (options.include_rest) out.rest = plan_model_directory(checkpoint, out.common.warnings);
  out.common.rest = out.rest.planned();
  check_text(out.common);
  out.warnings = out.common.warnings;
  out.manifests = planned_manifests(out.plan, checkpoint.model, out.common);
  out.side_files = copied_files(out.rest);
  if (options.shard && options.shard->index != 0) out.rest = {};  // one shard copies it for all
  out.inputs = inputs_of(*checkpoint.source, out.rest);
  out.wanted = files_of_shard(out.plan, options.shard.value_or(Shard{}));
  keep_jobs(out.plan, out.wanted);
  require_memory(options.limits, memory_of(out.plan, options.compression, *checkpoint.source));
  return out;
}

void leave_out_recorded(RepackPlan& plan, const ConversionOutput& output) {
  plan.wanted = left_over(plan, [&](size_t /*file*/, const std::string& name,
                                    const ManifestLayer&) { return output.recorded(name); });
  keep_jobs(plan.plan, plan.wanted);
}

Repack::Repack(const OpenedCheckpoint& checkpoint, RepackPlan plan, ConversionOutput& output,
               const RepackOptions& options)
    : checkpoint_(checkpoint),
      plan_(std::move(plan)),
      output_(output),
      options_(options),
      repacker_(*checkpoint.source, checkpoint.model, plan_.plan, plan_.layout,
                layout_parameters(plan_.common.target)),
      writer_(
          output.blob(), plan_.plan, checkpoint.model, plan_.common,
          [this](const FinishedFile& file) { output_.finished(file, repacker_.warnings()); },
          [this] { output_.named(); }) {
  kept_ = keep_finished();
  data_bytes_ = job_bytes(plan_.plan);
  output_.reserve(bytes_to_move());
}

// Takes over the wanted files that an earlier run finished, removes their jobs from the plan, and
// returns their number.
int64_t Repack::keep_finished() {
  const int64_t wanted = plan_.files();
  plan_.wanted =
      left_over(plan_, [&](size_t file, const std::string& name, const ManifestLayer& layer) {
        const Manifest& rank = plan_.manifests[plan_.plan.files[file].rank];
        return output_.keep_layer(name, rank, layer, options_.limits.threads);
      });
  keep_jobs(plan_.plan, plan_.wanted);
  return wanted - plan_.files();
}

void Repack::run(const RunHooks& hooks) {
  // A far source's rate is the network's; fewer files at once lose less to an interruption, and one
  // takes the least of the disk on the way to object storage.
  const int most = output_.is_far() ? 1 : checkpoint_.source->reads_ahead() ? 4 : INT_MAX;
  interleave_files(plan_.plan, std::min(options_.limits.threads, most));
  repacker_.expect(plan_.plan.jobs);
  move_layers(hooks);
  copy_rest(hooks);
}

// Reads every job, makes its pieces, and writes them.
void Repack::move_layers(const RunHooks& hooks) {
  const Plan& plan = plan_.plan;
  const Compression& compression = options_.compression;
  Pool<FrameEncoder> encoders([&] { return std::make_unique<FrameEncoder>(compression.level); });
  const auto each_piece = [](const Job& job, InFlight& at, const auto& stage) {
    for (size_t i = 0; i < job.pieces.size(); ++i) stage(job.pieces[i], at.outgoing[i]);
  };
  const auto encode = [&](const Job& job, InFlight& at) {
    encoders.use([&](FrameEncoder& encoder) {
      each_piece(job, at, [&](const Piece& piece, OutgoingPiece& out) {
        encode_piece(encoder, plan.files[piece.file].tensors[piece.tensor], piece, out);
      });
    });
  };
  run_jobs<Job, InFlight>(
      plan.jobs, jobs_in_flight(options_.limits, memory_of(plan, compression, *checkpoint_.source)),
      {.work =
           [&](const Job& job, InFlight& at) {
             hooks.check_stop();
             repacker_.work(job, at.buffers);
             at.outgoing.resize(std::max(at.outgoing.size(), job.pieces.size()));
             for (size_t i = 0; i < job.pieces.size(); ++i) {
               at.outgoing[i].decoded = at.buffers.pieces[i];
             }
             if (compression.zstd) encode(job, at);
           },
       .place =
           [&](const Job& job, InFlight& at) {
             each_piece(job, at,
                        [&](const Piece& piece, OutgoingPiece& out) { writer_.place(piece, out); });
           },
       .store =
           [&](const Job& job, InFlight& at) {
             each_piece(job, at,
                        [&](const Piece& piece, OutgoingPiece& out) { writer_.store(piece, out); });
           },
       .finish =
           [&](const Job& job, InFlight& at) {
             each_piece(job, at, [&](const Piece& piece, const OutgoingPiece& out) {
               writer_.finish(piece, out);
               hooks.progress(static_cast<int64_t>(out.decoded.size()));
             });
           }});
}

void Repack::copy_rest(const RunHooks& hooks) {
  const RestHooks rest{.progress =
                           [&](int64_t bytes) {
                             hooks.check_stop();
                             hooks.progress(bytes);
                           },
                       .kept = [&](const std::string& name) { return output_.keep(in_blob(name)); },
                       .finished =
                           [&](const ManifestFile& file) {
                             output_.finished({in_blob(file.name), file.size, file.xxh3_128}, {});
                           },
                       .named = [&] { output_.named(); }};
  write_rest(*checkpoint_.source, plan_.rest, output_.home(), rest);
}

RepackResult Repack::commit() {
  writer_.finish(plan_.wanted);
  checkpoint_.source->check_unchanged();
  plan_.rest.check_unchanged();
  RepackResult result;
  result.warnings = output_.commit(repacker_.warnings());
  result.files = plan_.files() + kept_;
  result.kept = kept_;
  result.rest_files = std::ssize(plan_.rest.planned());
  result.data_bytes = data_bytes_;
  result.written_bytes = writer_.bytes_written();
  return result;
}

}  // namespace mxfp4
