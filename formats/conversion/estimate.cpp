#include "formats/conversion/estimate.hpp"

#include <algorithm>
#include <chrono>
#include <map>

#include "formats/blob/blob_writer.hpp"
#include "formats/conversion/repacker.hpp"
#include "lib/layouts/knobs.hpp"

namespace mxfp4 {
namespace {

constexpr std::chrono::milliseconds kLongEnough{500};

// Measured bytes of one tensor's pieces.
struct Sample {
  int64_t decoded = 0;
  int64_t stored = 0;
};

int64_t bytes_of(const Plan& plan, const Piece& piece) {
  return piece.granules * plan.files[piece.file].tensors[piece.tensor].granule_bytes;
}

}  // namespace

RepackEstimate estimate_repack(const OpenedCheckpoint& checkpoint, const Conversion& conversion,
                               const RepackPlan& plan, const RepackOptions& options) {
  const std::vector<Job>& jobs = plan.plan.jobs;
  Repacker repacker(*checkpoint.source, checkpoint.model, plan.plan, conversion.layout,
                    layout_parameters(conversion.target));
  FrameEncoder encoder(options.compression.level);
  JobBuffers buffers;
  std::map<size_t, Sample> samples;  // by tensor of a file
  Sample all;
  const auto start = std::chrono::steady_clock::now();
  for (const Job& job : jobs) {
    const Piece& first = job.pieces.front();
    if (first.file != jobs.front().pieces.front().file || samples.contains(first.tensor)) continue;
    if (all.decoded > 0 && std::chrono::steady_clock::now() - start > kLongEnough) break;
    repacker.read(job, buffers);
    repacker.work(job, buffers);
    for (size_t i = 0; i < job.pieces.size(); ++i) {
      const Piece& piece = job.pieces[i];
      OutgoingPiece out;
      out.decoded = buffers.pieces[i];
      const auto decoded = static_cast<int64_t>(out.decoded.size());
      int64_t stored = decoded;
      if (options.compression.zstd) {
        encode_piece(encoder, plan.plan.files[piece.file].tensors[piece.tensor], piece, out);
        stored = 0;
        for (const FrameInfo& frame : out.frames) stored += frame.encoded;
      }
      samples[piece.tensor].decoded += decoded;
      samples[piece.tensor].stored += stored;
      all.decoded += decoded;
      all.stored += stored;
    }
    repacker.release(job);
  }
  const double taken =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  RepackEstimate estimate;
  if (all.decoded == 0) return estimate;
  double stored = 0;
  for (const Job& job : jobs) {
    for (const Piece& piece : job.pieces) {
      const auto found = samples.find(piece.tensor);
      const Sample& sample = found == samples.end() ? all : found->second;
      stored += static_cast<double>(bytes_of(plan.plan, piece)) *
                static_cast<double>(sample.stored) / static_cast<double>(sample.decoded);
    }
  }
  estimate.stored_bytes = static_cast<int64_t>(stored);
  estimate.seconds = taken * static_cast<double>(plan.data_bytes()) /
                     static_cast<double>(all.decoded) / std::max(1, options.limits.threads);
  return estimate;
}

}  // namespace mxfp4
