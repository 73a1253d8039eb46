// convert: plan first, then move bytes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "apps/commands.hpp"
#include "apps/interrupt.hpp"
#include "apps/session.hpp"
#include "apps/shard_option.hpp"
#include "formats/blob/blob_writer.hpp"
#include "formats/conversion/conversion_output.hpp"
#include "formats/conversion/repacker.hpp"
#include "formats/conversion/rest_writer.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/pipeline.hpp"
#include "lib/exec/pool.hpp"
#include "lib/plan/frames.hpp"
#include "lib/plan/job_order.hpp"
#include "lib/plan/plan.hpp"
#include "lib/plan/shard.hpp"

namespace mxfp4 {
namespace {

// What one job in flight owns.
struct Token {
  JobBuffers buffers;
  std::vector<OutgoingPiece> pieces;  // of the job
};

int zstd_level(const ConvertOptions& options) { return options.level.value_or(1); }

// Of a job, and of the encoder of the worker that is at it.
int64_t largest_cost(const ConvertOptions& options, const Plan& plan) {
  int64_t cost = 0;
  for (const Job& job : plan.jobs) cost = std::max(cost, job.cost);
  return options.compress == "zstd" ? cost + encoder_bytes(zstd_level(options), kFrameBytes) : cost;
}

// `encoders` is empty where pieces are written as they are.
void take_pieces(const Plan& plan, const Job& job, std::optional<Pool<FrameEncoder>>& encoders,
                 Token& token) {
  for (size_t i = 0; i < job.pieces.size(); ++i) {
    token.pieces[i].decoded = token.buffers.pieces[i];
  }
  if (!encoders) return;
  encoders->use([&](FrameEncoder& encoder) {
    for (size_t i = 0; i < job.pieces.size(); ++i) {
      const Piece& piece = job.pieces[i];
      encode_piece(encoder, plan.files[piece.file].tensors[piece.tensor], piece, token.pieces[i]);
    }
  });
}

// Moves all bytes: every job is read, worked on, and its pieces written.
void run_jobs(const ConvertOptions& options, const Plan& plan, Repacker& repacker,
              BlobWriter& writer, Progress& progress) {
  const int threads = options.resources.threads;
  const int64_t tokens = tokens_for(options.resources.memory, largest_cost(options, plan), threads);
  std::vector<Token> in_flight(static_cast<size_t>(tokens));
  size_t pieces = 0;
  for (const Job& job : plan.jobs) pieces = std::max(pieces, job.pieces.size());
  for (Token& token : in_flight) token.pieces.resize(pieces);
  std::optional<Pool<FrameEncoder>> encoders;
  if (options.compress == "zstd") {
    encoders.emplace([&] { return std::make_unique<FrameEncoder>(zstd_level(options)); });
  }
  // Calls stage(piece, outgoing) for the pieces of a job.
  const auto each_piece = [&](int64_t job, int64_t token, const auto& stage) {
    const std::vector<Piece>& all = plan.jobs[static_cast<size_t>(job)].pieces;
    for (size_t i = 0; i < all.size(); ++i) {
      stage(all[i], in_flight[static_cast<size_t>(token)].pieces[i]);
    }
  };
  run_pipeline(static_cast<int64_t>(plan.jobs.size()), {threads, tokens},
               {.read =
                    [&](int64_t job, int64_t token) {
                      check_interrupted();
                      repacker.read(plan.jobs[static_cast<size_t>(job)],
                                    in_flight[static_cast<size_t>(token)].buffers);
                    },
                .work =
                    [&](int64_t job, int64_t at) {
                      Token& token = in_flight[static_cast<size_t>(at)];
                      repacker.work(plan.jobs[static_cast<size_t>(job)], token.buffers);
                      take_pieces(plan, plan.jobs[static_cast<size_t>(job)], encoders, token);
                    },
                .place =
                    [&](int64_t job, int64_t token) {
                      each_piece(job, token, [&](const Piece& piece, OutgoingPiece& out) {
                        writer.place(piece, out);
                      });
                    },
                .store =
                    [&](int64_t job, int64_t token) {
                      each_piece(job, token, [&](const Piece& piece, OutgoingPiece& out) {
                        writer.store(piece, out);
                      });
                      repacker.release(plan.jobs[static_cast<size_t>(job)]);
                    },
                .write =
                    [&](int64_t job, int64_t token) {
                      each_piece(job, token, [&](const Piece& piece, const OutgoingPiece& out) {
                        writer.finish(piece, out);
                        progress.advance(static_cast<int64_t>(out.decoded.size()));
                      });
                    }});
}

// `plan` has the jobs of this run alone, which are of so many `files`.
void print_plan(const Plan& plan, const Manifest& manifest, const ModelLayers& model, int64_t files,
                const RestPlan& rest, const Console& console) {
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
    json["files"] = files;
    json["output_bytes"] = job_bytes(plan);
    json["rest_files"] = rest.planned().size();
    json["rest_bytes"] = rest.bytes();
    console.result_json(json);
    return;
  }
  console.say(
      fmt::format("backend {}, layout {}", backend_name(manifest.target.backend), manifest.layout));
  console.say(fmt::format("{}, {} experts, H {} -> {}, I {} -> {}, {}",
                          count_of(model.layers.size(), "layer"), dims.num_experts,
                          dims.hidden_size, padded.hidden_size, dims.intermediate_size,
                          padded.intermediate_size, count_of(plan.ranks.size(), "rank")));
  const size_t others = rest.planned().size();
  console.say(fmt::format(
      "would write {}, {} before compression{}; next: the same without --dry-run",
      count_of(static_cast<uint64_t>(files), "layer file"), human_bytes(job_bytes(plan)),
      others == 0 ? ""
                  : fmt::format(", and {}, {}", count_of(others, "other file"),
                                human_bytes(rest.bytes()))));
}

struct Result {
  int64_t files = 0;  // of layers, kept ones included
  int64_t kept = 0;
  int64_t data_bytes = 0;     // before compression, kept ones aside
  int64_t written_bytes = 0;  // of layer files, kept ones aside
  double seconds = 0;
};

void print_summary(const ConvertOptions& options, const Plan& plan, const Manifest& manifest,
                   const Result& result, const Console& console) {
  if (console.json()) {
    nlohmann::ordered_json json;
    json["output"] = options.output.string();
    json["backend"] = backend_name(manifest.target.backend);
    json["layout"] = manifest.layout;
    json["files"] = result.files;
    json["kept_files"] = result.kept;
    json["rest_files"] = manifest.rest.size();
    json["ranks"] = plan.ranks.size();
    json["data_bytes"] = result.data_bytes;
    json["written_bytes"] = result.written_bytes;
    json["warnings"] = manifest.warnings;
    console.result_json(json);
    return;
  }
  const std::string out = shell_word(options.output.string());
  console.detail(fmt::format("{} before compression", human_bytes(result.data_bytes)));
  console.say(fmt::format("{}: {} for {}, {}{}; next: mxfp4-repack {} {}", out,
                          count_of(static_cast<uint64_t>(result.files), "layer file"),
                          backend_name(manifest.target.backend),
                          pace(result.written_bytes, result.data_bytes, result.seconds),
                          result.kept == 0 ? "" : fmt::format(", {} kept", result.kept),
                          options.shard.empty() ? "verify" : "finalize", out));
}

int already_complete(const ConvertOptions& options, const Console& console) {
  if (console.json()) {
    nlohmann::ordered_json json;
    json["output"] = options.output.string();
    json["complete"] = true;
    console.result_json(json);
  } else {
    const std::string out = shell_word(options.output.string());
    console.say(fmt::format("{}: complete already, nothing to do; next: mxfp4-repack {} {}", out,
                            options.shard.empty() ? "verify" : "finalize", out));
  }
  return kOk;
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

// What --include-rest copies.
RestPlan plan_rest_of(const ConvertOptions& options, const OpenInput& input,
                      std::vector<std::string>& warnings) {
  if (!options.include_rest) return {};
  RestPlan rest = plan_rest(*input.source, input.model.rest);
  std::vector<SideFile> side;
  std::error_code ignored;
  if (input.source->kind() == "safetensors" &&
      std::filesystem::is_directory(options.input.path, ignored)) {
    side = find_side_files(options.input.path, warnings);
  }
  const std::optional<std::string> config = config_text(options.input, *input.source);
  std::erase_if(side, [](const SideFile& file) { return file.name == kConfigName; });
  if (config) {
    side.push_back({.name = kConfigName,
                    .from = {},
                    .text = *config,
                    .size = static_cast<int64_t>(config->size())});
  } else {
    warnings.emplace_back("the input has no config.json, so OUT has none");
  }
  rest.side.insert(rest.side.end(), side.begin(), side.end());
  if (input.layers_left_out > 0) {
    warnings.push_back(fmt::format("OUT lacks the experts of {}, which --layers leaves out",
                                   count_of(input.layers_left_out, "layer")));
  }
  return rest;
}

// The files that are read, and so must not lie in OUT.
std::vector<std::filesystem::path> inputs_of(const Source& source, const RestPlan& rest) {
  std::vector<std::filesystem::path> inputs;
  for (const FileStatus& file : source.files()) inputs.push_back(file.path);
  for (const SideFile& file : rest.side) {
    if (!file.from.empty()) inputs.push_back(file.from);
  }
  return inputs;
}

std::vector<ManifestFile> write_rest_of(Source& source, const RestPlan& rest,
                                        ConversionOutput& output, Progress& progress) {
  const auto in_blob = [](const std::string& name) { return "../" + name; };
  return write_rest(source, rest, output.blob().parent_path(),
                    {.progress =
                         [&](int64_t bytes) {
                           check_interrupted();
                           progress.advance(bytes);
                         },
                     .kept = [&](const std::string& name) -> std::optional<ManifestFile> {
                       const auto kept = output.kept(in_blob(name));
                       if (!kept) return std::nullopt;
                       return ManifestFile{name, kept->size, kept->xxh3_128};
                     },
                     .finished =
                         [&](const ManifestFile& file) {
                           output.finished({in_blob(file.name), file.size, file.xxh3_128, {}}, {});
                         }});
}

// Takes over the wanted files that an earlier run finished; the plan keeps the jobs of the others.
int64_t keep_finished(Plan& plan, std::vector<bool> wanted, const std::vector<Manifest>& planned,
                      const ConversionOutput& output, BlobWriter& writer) {
  int64_t kept = 0;
  std::vector<size_t> next(plan.ranks.size(), 0);
  for (size_t file = 0; file < plan.files.size(); ++file) {
    const size_t rank = plan.files[file].rank;
    const ManifestLayer& layer = planned[rank].layers[next[rank]++];
    if (!wanted[file]) continue;
    const auto finished = output.kept(name_in_blob(plan.ranks[rank], layer.file));
    if (!finished || finished->tensors.size() != layer.tensors.size()) continue;
    writer.keep(file, *finished);
    wanted[file] = false;
    ++kept;
  }
  keep_jobs(plan, wanted);
  return kept;
}

}  // namespace

int run_convert(const ConvertOptions& options, const Console& console) {
  if (options.resume && options.force) {
    throw Error::usage("--resume keeps what --force replaces: give one of them");
  }
  if (options.level && options.compress == "none") {
    throw Error::usage("--level: of no use with --compress none");
  }
  std::optional<Shard> shard;
  if (!options.shard.empty()) shard = parse_shard(options.shard, std::getenv);
  const OpenInput input =
      open_input(options.input, options.deployment.family, rules_for(options.deployment));
  const Choice choice = choose_backend(options.deployment, input);
  require_backend(choice);
  const Layout* layout = options.emit == "loaded" ? nullptr : require_layout(choice);
  const std::vector<RankSlice> ranks = plan_ranks(options.deployment, input, choice);
  report_decision(choice, console);
  if (layout != nullptr) check_defects(options, choice, input.model, ranks.front(), console);

  const bool zstd = options.compress == "zstd";
  Plan plan = make_plan(input.model, ranks,
                        {.layout = layout,
                         .target = choice.target,
                         .threads = options.resources.threads,
                         .padding = zstd && !options.dry_run});
  Manifest manifest = describe_conversion(input, choice, layout);
  manifest.all_layers = options.input.layers.empty();
  manifest.compression = {zstd, zstd_level(options)};
  if (manifest.compression.zstd) manifest.libzstd = zstd_library_version();
  RestPlan rest = plan_rest_of(options, input, manifest.warnings);
  manifest.rest = rest.planned();
  check_text(manifest);
  // One shard copies it for all.
  if (shard && shard->index != 0) rest = {};
  for (const std::string& warning : manifest.warnings) console.warn(warning);
  refuse_inputs_in(options.output, inputs_of(*input.source, rest));
  const std::vector<bool> wanted = files_of_shard(plan, shard.value_or(Shard{}));
  const int64_t files = std::ranges::count(wanted, true);
  if (options.dry_run) {
    keep_jobs(plan, wanted);
    print_plan(plan, manifest, input.model, files, rest, console);
    return kOk;
  }

  watch_signals("--resume goes on from what is complete");
  const std::vector<Manifest> planned = planned_manifests(plan, input.model, manifest);
  ConversionOutput output({.output = options.output,
                           .input = options.input.path,
                           .include_rest = options.include_rest,
                           .resume = options.resume,
                           .force = options.force,
                           .shard = shard,
                           .between = check_interrupted},
                          planned, *input.source);
  if (output.complete()) return already_complete(options, console);
  manifest.rest.clear();
  Repacker repacker(*input.source, input.model, plan, layout, choice.target);
  BlobWriter writer(output.blob(), plan, input.model, manifest, wanted,
                    [&](const FinishedFile& f) { output.finished(f, repacker.warnings()); });
  Result result;
  result.files = files;
  result.kept = keep_finished(plan, wanted, planned, output, writer);
  result.data_bytes = job_bytes(plan);
  output.reserve(result.data_bytes + rest.bytes());

  Progress progress(console, result.data_bytes + rest.bytes());
  weave_files(plan, options.resources.threads);
  run_jobs(options, plan, repacker, writer, progress);
  manifest.rest = write_rest_of(*input.source, rest, output, progress);
  progress.finish();
  std::vector<Manifest> manifests = writer.finish();
  for (Manifest& rank : manifests) rank.rest = manifest.rest;
  input.source->check_unchanged();
  const std::vector<std::string> warnings =
      output.commit(std::move(manifests), repacker.warnings());
  for (const std::string& warning : warnings) console.warn(warning);
  manifest.warnings.insert(manifest.warnings.end(), warnings.begin(), warnings.end());
  result.written_bytes = writer.bytes_written();
  result.seconds = progress.seconds();
  print_summary(options, plan, manifest, result, console);
  return kOk;
}

}  // namespace mxfp4
