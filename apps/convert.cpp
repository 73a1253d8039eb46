// convert: plan first, then move bytes.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/commands.hpp"
#include "apps/output_directory.hpp"
#include "apps/session.hpp"
#include "formats/blob_writer.hpp"
#include "formats/repacker.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/pipeline.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {
namespace {

// What one job in flight owns.
struct Token {
  JobBuffers buffers;
  std::unique_ptr<FrameEncoder> encoder;
  std::vector<std::vector<std::byte>> encoded;  // by piece
  std::vector<std::vector<FrameInfo>> frames;   // by piece
};

int64_t largest_cost(const Plan& plan) {
  int64_t cost = 0;
  for (const Job& job : plan.jobs) cost = std::max(cost, job.cost);
  return cost;
}

void encode(const Plan& plan, const Job& job, Token& token) {
  for (size_t i = 0; i < job.pieces.size(); ++i) {
    const Piece& piece = job.pieces[i];
    token.encoded[i].clear();
    token.frames[i] = encode_piece(*token.encoder, plan.files[piece.file].tensors[piece.tensor],
                                   piece, token.buffers.pieces[i], token.encoded[i]);
  }
}

// Moves all bytes: read, work and write of every job.
void run_jobs(const ConvertOptions& options, Source& source, const Plan& plan, Repacker& repacker,
              BlobWriter& writer, Progress& progress) {
  const bool zstd = options.compress == "zstd";
  const int threads = options.resources.threads;
  const int64_t tokens = tokens_for(options.resources.memory, largest_cost(plan), threads);
  std::vector<Token> in_flight(static_cast<size_t>(tokens));
  size_t pieces = 0;
  for (const Job& job : plan.jobs) pieces = std::max(pieces, job.pieces.size());
  for (Token& token : in_flight) {
    if (zstd) token.encoder = std::make_unique<FrameEncoder>(options.level);
    token.encoded.resize(pieces);
    token.frames.resize(pieces);
  }
  const auto job_at = [&](int64_t job) -> const Job& {
    return plan.jobs[static_cast<size_t>(job)];
  };
  const auto token_at = [&](int64_t token) -> Token& {
    return in_flight[static_cast<size_t>(token)];
  };
  run_pipeline(
      static_cast<int64_t>(plan.jobs.size()), {threads, tokens},
      {.read = [&](int64_t job,
                   int64_t token) { repacker.read(job_at(job), token_at(token).buffers); },
       .work =
           [&](int64_t job, int64_t token) {
             repacker.work(job_at(job), token_at(token).buffers);
             if (zstd) encode(plan, job_at(job), token_at(token));
           },
       .write =
           [&](int64_t job, int64_t at) {
             Token& token = token_at(at);
             for (size_t i = 0; i < job_at(job).pieces.size(); ++i) {
               const ConstBytes decoded = token.buffers.pieces[i];
               writer.write(job_at(job).pieces[i], {decoded, token.encoded[i], token.frames[i]});
               progress.advance(static_cast<int64_t>(decoded.size()));
             }
           }});
  source.check_unchanged();
}

void print_plan(const Plan& plan, const Manifest& manifest, const ModelLayers& model,
                const Console& console) {
  const LayerDims dims = common_dims(model);
  const LayerDims& padded = plan.ranks.front().padded;
  if (console.json()) {
    nlohmann::ordered_json json;
    json["backend"] = backend_name(manifest.target.backend);
    json["layout"] = manifest.layout;
    json["layers"] = model.layers.size();
    json["ranks"] = plan.ranks.size();
    json["padded_hidden_size"] = padded.hidden_size;
    json["padded_intermediate_size"] = padded.intermediate_size;
    json["output_bytes"] = plan.output_bytes;
    console.result(json.dump(2) + "\n");
    return;
  }
  console.say(
      fmt::format("backend {}, layout {}", backend_name(manifest.target.backend), manifest.layout));
  console.say(fmt::format("{} layers, {} experts, H {} -> {}, I {} -> {}, {} rank{}",
                          model.layers.size(), dims.num_experts, dims.hidden_size,
                          padded.hidden_size, dims.intermediate_size, padded.intermediate_size,
                          plan.ranks.size(), plan.ranks.size() == 1 ? "" : "s"));
  console.say(fmt::format("would write {} before compression", human_bytes(plan.output_bytes)));
}

void print_summary(const ConvertOptions& options, const Plan& plan, const Manifest& manifest,
                   const BlobWriter& writer, double seconds, const Console& console) {
  if (console.json()) {
    nlohmann::ordered_json json;
    json["output"] = options.output.string();
    json["backend"] = backend_name(manifest.target.backend);
    json["layout"] = manifest.layout;
    json["files"] = plan.files.size();
    json["ranks"] = plan.ranks.size();
    json["data_bytes"] = plan.output_bytes;
    json["written_bytes"] = writer.bytes_written();
    json["warnings"] = manifest.warnings;
    console.result(json.dump(2) + "\n");
    return;
  }
  const auto rate =
      static_cast<int64_t>(static_cast<double>(plan.output_bytes) / std::max(seconds, 1e-6));
  console.say(fmt::format(
      "{}: {} layer file{} for {}, {} ({} before compression), {}/s", options.output.string(),
      plan.files.size(), plan.files.size() == 1 ? "" : "s", backend_name(manifest.target.backend),
      human_bytes(writer.bytes_written()), human_bytes(plan.output_bytes), human_bytes(rate)));
  console.say(fmt::format("next: mxfp4-repack verify {}", options.output.string()));
}

// The oracle's trace with -v, and what is known to go wrong when such a checkpoint is loaded.
void report_decision(const Choice& choice, const Console& console) {
  for (const TraceStep& step : choice.decision.trace) {
    console.detail(
        fmt::format("{}: {}", step.candidate, step.supported ? "yes" : "no, " + step.reason));
  }
  for (const std::string& note : choice.decision.notes) console.warn(note);
}

void check_defects(const ConvertOptions& options, const Choice& choice, const ModelLayers& model,
                   const RankSlice& rank, const Console& console) {
  for (const std::string& defect : known_defects(choice, model, rank)) {
    // Whoever made a loaded input chose its row order; a checkpoint's user cannot know.
    if (!options.allow_known_defects && model.style != Style::kLoaded) {
      throw Error::unsupported(defect).hint(
          "--allow-known-defects writes the reference's bytes all the same");
    }
    console.warn(defect);
  }
}

}  // namespace

int run_convert(const ConvertOptions& options, const Console& console) {
  const OpenInput input = open_input(options.input, options.deployment.family);
  const Choice choice = choose_backend(options.deployment, input);
  require_backend(choice);
  const Layout* layout = options.emit == "loaded" ? nullptr : require_layout(choice);
  const std::vector<RankSlice> ranks = plan_ranks(options.deployment, input, choice);
  report_decision(choice, console);
  if (layout != nullptr) check_defects(options, choice, input.model, ranks.front(), console);

  const Plan plan = make_plan(input.model, ranks, {.layout = layout, .target = choice.target});
  Manifest manifest = describe_conversion(input, choice, layout);
  manifest.all_layers = options.input.layers.empty();
  manifest.compression = {options.compress == "zstd", options.level};
  if (manifest.compression.zstd) manifest.libzstd = zstd_library_version();
  for (const std::string& warning : manifest.warnings) console.warn(warning);
  if (options.dry_run) {
    print_plan(plan, manifest, input.model, console);
    return kOk;
  }

  OutputDirectory directory(options.output, options.force);
  directory.reserve(plan.output_bytes);
  BlobWriter writer(options.output, plan, input.model, manifest);
  Repacker repacker(*input.source, input.model, plan, layout, choice.target);
  Progress progress(console, plan.output_bytes);
  run_jobs(options, *input.source, plan, repacker, writer, progress);
  const std::vector<std::string> warnings = repacker.warnings();
  for (const std::string& warning : warnings) console.warn(warning);
  writer.commit(warnings);
  directory.keep();
  manifest.warnings.insert(manifest.warnings.end(), warnings.begin(), warnings.end());
  print_summary(options, plan, manifest, writer, progress.seconds(), console);
  return kOk;
}

}  // namespace mxfp4
