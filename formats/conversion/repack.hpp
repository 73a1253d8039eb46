// A conversion, from the decision to the last byte: plan, then move.
//
// Usage:
//   const RepackPlan plan = plan_repack(checkpoint, conversion, options);     // no data read so far
//   ConversionOutput output(request, plan.manifests, *checkpoint.source);     // OUT is ours
//   Repack repack(checkpoint, conversion, plan, output, options);
//   repack.run(hooks);                                                        // moves every byte
//   const RepackResult result = repack.commit();                              // OUT is complete
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/blob/blob_writer.hpp"
#include "formats/conversion/conversion_output.hpp"
#include "formats/conversion/decide.hpp"
#include "formats/conversion/repacker.hpp"
#include "formats/conversion/rest_writer.hpp"
#include "formats/conversion/run_limits.hpp"
#include "lib/plan/shard.hpp"

namespace mxfp4 {

struct RepackOptions {
  Compression compression{};
  bool include_rest = false;     // OUT is a model directory
  std::optional<Shard> shard{};  // only this part of the layers; the first also copies the rest
  RunLimits limits{};
};

// Every file that will be written, and where.
struct RepackPlan {
  Plan plan;                        // of all files; the jobs are those of this shard
  std::vector<bool> wanted;         // by file of the plan: this shard's
  RestPlan rest;                    // of this shard
  Manifest common;                  // what all ranks' manifests share; data aside
  std::vector<Manifest> manifests;  // every rank's, data aside
  std::vector<std::string> warnings;
  std::vector<std::filesystem::path> inputs;  // every file that will be read

  [[nodiscard]] int64_t files() const;       // of layers, of this shard
  [[nodiscard]] int64_t data_bytes() const;  // of them, before compression
};

// Requires a conversion without a refusal. Throws Error::input for names that a manifest cannot
// hold and side files that cannot be read.
[[nodiscard]] RepackPlan plan_repack(const OpenedCheckpoint& checkpoint,
                                     const Conversion& conversion, const RepackOptions& options);

// Leaves out the jobs of layer files that `output` has on record: what is left to do.
void leave_out_recorded(RepackPlan& plan, const ConversionOutput& output);

struct RepackResult {
  int64_t files = 0;  // of layers, kept ones included
  int64_t kept = 0;   // that an earlier run had finished
  int64_t rest_files = 0;
  int64_t data_bytes = 0;             // of layers before compression, kept ones aside
  int64_t written_bytes = 0;          // of layer files, kept ones aside
  std::vector<std::string> warnings;  // about the data, of all runs
};

class Repack {
 public:
  // All arguments outlive this. Takes over what an earlier run finished; throws Error::output when
  // the file system has no room for the others.
  Repack(const OpenedCheckpoint& checkpoint, const Conversion& conversion, RepackPlan plan,
         ConversionOutput& output, const RepackOptions& options);

  // Bytes that run() will report as progress.
  [[nodiscard]] int64_t bytes_to_move() const { return data_bytes_ + plan_.rest.bytes(); }
  // Progress counts bytes before compression. A stopped run leaves whole files, which a later one
  // keeps.
  void run(const RunHooks& hooks);
  // Throws Error::input when the checkpoint changed meanwhile.
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
  std::vector<ManifestFile> rest_;
};

}  // namespace mxfp4
