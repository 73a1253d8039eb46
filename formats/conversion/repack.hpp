// Carries out a conversion that was decided: plans it, then moves every byte.
//
// Usage:
//   const RepackPlan plan =                                                // reads samples only
//       plan_repack(checkpoint, conversion.ranks, decided_manifest(conversion), options);
//   ConversionOutput output(request, plan.manifests, *checkpoint.source);  // locks OUT
//   Repack repack(checkpoint, plan, output, options);
//   repack.run(hooks);                                                     // moves every byte
//   const RepackResult result = repack.commit();                           // completes OUT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/blob/blob_writer.hpp"
#include "formats/checkpoint/opened_checkpoint.hpp"
#include "formats/conversion/repacker.hpp"
#include "formats/conversion/rest_writer.hpp"
#include "formats/conversion/run_limits.hpp"
#include "formats/output/conversion_output.hpp"
#include "lib/plan/shard.hpp"

namespace mxfp4 {

struct RepackOptions {
  Compression compression{};
  bool include_rest = false;     // OUT is a model directory
  std::optional<Shard> shard{};  // only this part of the layers; shard 0 also copies the rest
  RunLimits limits{};
  std::string asked = "{}";  // of the manifest
};

// Every file that will be written, and where.
struct RepackPlan {
  const Layout* layout = nullptr;   // null: stop at the loaded layout
  Plan plan;                        // of all files; the jobs belong to this shard
  std::vector<bool> wanted;         // by file of the plan: whether this shard writes it
  RestPlan rest;                    // what this shard copies
  Manifest common;                  // what all ranks' manifests share, without what data decides
  std::vector<Manifest> manifests;  // every rank's, without what data decides
  std::vector<std::string> warnings;
  std::vector<std::filesystem::path> inputs;  // every file that will be read
  std::vector<FileStatus> side_files;         // that this shard or another copies as they are

  [[nodiscard]] int64_t files() const;       // layer files of this shard
  [[nodiscard]] int64_t data_bytes() const;  // of the planned jobs, before compression
};

// `decided`: what the decision knows of the manifests; its layout and target say what is made for
// `ranks`. Samples the checkpoint's layers. Throws Error::input for names that a manifest cannot
// hold and side files that cannot be read, Error::usage if the run does not fit into
// options.limits.
[[nodiscard]] RepackPlan plan_repack(OpenedCheckpoint& checkpoint, std::vector<RankSlice> ranks,
                                     Manifest decided, const RepackOptions& options);

// Leaves out layer files that an earlier run finished by the record of `output`.
void leave_out_recorded(RepackPlan& plan, const ConversionOutput& output);

struct RepackResult {
  int64_t files = 0;  // layer files of this run, kept ones included
  int64_t kept = 0;   // layer files that an earlier run had finished
  int64_t rest_files = 0;
  int64_t data_bytes = 0;             // of layers before compression, kept ones aside
  int64_t written_bytes = 0;          // of layer files, kept ones aside
  std::vector<std::string> warnings;  // about the data, of all runs
};

class Repack {
 public:
  // `checkpoint` and `output` must outlive this. Takes over the files that an earlier
  // run finished. Throws Error::output if the file system has no room for the others.
  Repack(const OpenedCheckpoint& checkpoint, RepackPlan plan, ConversionOutput& output,
         const RepackOptions& options);

  // Layer files that an earlier run finished, of plan.files().
  [[nodiscard]] int64_t kept() const { return kept_; }
  // Bytes that run() will report as progress.
  [[nodiscard]] int64_t bytes_to_move() const { return data_bytes_ + plan_.rest.bytes(); }
  // Progress counts bytes before compression. A run that is stopped leaves complete files, which a
  // later run keeps.
  void run(const RunHooks& hooks);
  // Completes OUT. Throws Error::input if the checkpoint changed during the run.
  [[nodiscard]] RepackResult commit();

 private:
  int64_t keep_finished();
  void move_layers(const RunHooks& hooks);
  void copy_rest(const RunHooks& hooks);

  const OpenedCheckpoint& checkpoint_;
  RepackPlan plan_;
  ConversionOutput& output_;
  RepackOptions options_;
  Repacker repacker_;
  BlobWriter writer_;
  int64_t kept_ = 0;
  int64_t data_bytes_ = 0;
};

}  // namespace mxfp4
