#include "formats/conversion/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/blob_writer.hpp"
#include "formats/conversion/first_difference.hpp"
#include "formats/conversion/memory_budget.hpp"
#include "formats/conversion/repacker.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/job_pipeline.hpp"
#include "lib/layouts/knobs.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

using Findings = std::vector<std::string>;

// Buffers of a job in flight.
struct CompareBuffers {
  JobBuffers made;
  Buffer stored;
  std::string finding;
};

// Says which byte of a job's piece is the first that differs from the stored one; empty if none
// does.
std::string compare_piece(const Plan& plan, const Piece& piece, const LayerReader& reader,
                          CompareBuffers& buffers) {
  const PlannedTensor& tensor = plan.files[piece.file].tensors[piece.tensor];
  const int64_t begin = piece.first_granule * tensor.granule_bytes;
  const MutableBytes stored = buffers.stored.get(piece.granules * tensor.granule_bytes);
  reader.read(tensor.offset + begin, stored);
  const ConstBytes made = buffers.made.pieces.front();
  const auto differs = first_difference(made, ConstBytes(stored).first(made.size()));
  if (!differs) return "";
  return fmt::format("{}: byte {} is not the repack of the input", tensor.name,
                     begin + static_cast<int64_t>(*differs));
}

// Makes every planned piece again and compares it with the blob's bytes. One rank is compared at a
// time, so that a job has one piece.
void compare_bytes(Repacker& repacker, const Plan& plan, const std::vector<LayerReader>& readers,
                   const std::vector<std::string>& paths, const RunLimits& limits,
                   const RunHooks& hooks, Findings& findings) {
  RunMemory memory{.outputs = outputs_of(plan), .direction = Direction::kForward};
  for (const Job& job : plan.jobs) {
    const Piece& piece = job.pieces.front();
    const int64_t granule = plan.files[piece.file].tensors[piece.tensor].granule_bytes;
    const int64_t stored = piece.granules * granule;
    memory.job_bytes = std::max(memory.job_bytes, job.cost + stored);
  }
  require_memory(limits, memory);
  repacker.expect(plan.jobs);
  run_jobs<Job, CompareBuffers>(
      plan.jobs, jobs_in_flight(limits, memory),
      {.work =
           [&](const Job& job, CompareBuffers& buffers) {
             hooks.check_stop();
             repacker.work(job, buffers.made);
             const Piece& piece = job.pieces.front();
             buffers.finding = in_context(paths[piece.file], [&] {
               return compare_piece(plan, piece, readers[piece.file], buffers);
             });
             if (!buffers.finding.empty()) {
               buffers.finding = fmt::format("{}: {}", paths[piece.file], buffers.finding);
             }
           },
       .finish =
           [&](const Job&, CompareBuffers& buffers) {
             if (!buffers.finding.empty()) findings.push_back(std::move(buffers.finding));
             hooks.progress(static_cast<int64_t>(buffers.made.pieces.front().size()));
           }});
}

}  // namespace

Findings compare_with_checkpoint(const PlannedCheckpoint& made, const fs::path& directory,
                                 const Manifest& manifest, const RunLimits& limits,
                                 const RunHooks& hooks) {
  Findings findings;
  std::vector<LayerReader> readers;
  std::vector<std::string> paths;
  for (const ManifestLayer& layer : manifest.layers) {
    paths.push_back((directory / layer.file).string());
    readers.emplace_back(paths.back());
  }
  Repacker repacker(*made.input.source, made.input.model, made.plan, made.layout,
                    layout_parameters(manifest.target));
  compare_bytes(repacker, made.plan, readers, paths, limits, hooks, findings);
  made.input.source->check_unchanged();
  return findings;
}

}  // namespace mxfp4
