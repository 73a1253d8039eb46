// convert: open, decide, plan, open the output, move the bytes, commit.
#include <fmt/format.h>

#include <algorithm>

#include "apps/blobs.hpp"
#include "apps/commands.hpp"
#include "apps/given_facts.hpp"
#include "apps/interrupt.hpp"
#include "apps/json_output.hpp"
#include "apps/parsers.hpp"
#include "apps/request.hpp"
#include "apps/serve_line.hpp"
#include "apps/summary.hpp"
#include "apps/text_layout.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/blob/journal.hpp"
#include "formats/conversion/repack.hpp"
#include "formats/decision/also_serves.hpp"
#include "formats/decision/given_path.hpp"
#include "formats/decision/request_json.hpp"
#include "formats/decision/unfinished.hpp"
#include "formats/os/file.hpp"
#include "formats/output/sibling.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

void check_flags(const ConvertOptions& options) {
  require_local(options.output);
  if (options.resume && options.force) {
    throw Error::usage("--resume keeps what --force replaces: give one of them");
  }
  if (options.level && options.compress == "none") {
    throw Error::usage("--level: has no effect with --compress none");
  }
}

RepackOptions repack_options(const ConvertOptions& options) {
  RepackOptions repack;
  repack.compression = {options.compress == "zstd", options.level.value_or(1)};
  repack.include_rest = options.include_rest;
  if (!options.shard.empty()) repack.shard = parse_shard(options.shard);
  repack.limits = options.resources;
  repack.read_back = options.read_back;
  return repack;
}

// Shows the oracle's trace with -v, and warns of the engine's faults with such a checkpoint.
void report_decision(const Conversion& conversion, const Console& console) {
  for (const TraceStep& step : conversion.decision.trace) {
    console.detail(
        fmt::format("{}: {}", step.candidate, step.supported ? "yes" : "no, " + step.reason));
  }
  if (conversion.refusal) return;
  for (const std::string& note : conversion.decision.notes) console.warn(note);
  for (const std::string& defect : conversion.defects) console.warn(defect);
}

void print_plan(const RepackPlan& plan, const Conversion& conversion,
                const ConversionOutput& output, const std::filesystem::path& where,
                const Console& console) {
  const Manifest& manifest = plan.common;
  const LayerDims& dims = conversion.model;
  const LayerDims& padded = conversion.ranks.front().padded;
  const size_t layers = plan.manifests.front().layers.size();
  const size_t others = plan.rest.planned().size();
  if (console.json()) {
    Json json = json_document("convert");
    json["dry_run"] = true;
    json["output"] = where.string();
    json["backend"] = backend_name(manifest.target.backend);
    json["layout"] = manifest.layout;
    json["num_layers"] = layers;
    json["num_ranks"] = conversion.ranks.size();
    json["padded_hidden_size"] = padded.hidden_size;
    json["padded_intermediate_size"] = padded.intermediate_size;
    json["num_layer_files"] = plan.files();
    json["data_bytes"] = plan.data_bytes();
    json["num_rest_files"] = others;
    json["rest_bytes"] = plan.rest.bytes();
    const auto free = output.free_bytes();
    json["free_bytes"] = free ? Json(*free) : Json();
    json["output_holds"] = output.holds();
    console.result_json(json);
    return;
  }
  console.say(
      fmt::format("backend {}, layout {}", backend_name(manifest.target.backend), manifest.layout));
  console.say(fmt::format("{}, {} experts, H {} -> {}, I {} -> {}, {}", count_of(layers, "layer"),
                          dims.num_experts, dims.hidden_size, padded.hidden_size,
                          dims.intermediate_size, padded.intermediate_size,
                          count_of(conversion.ranks.size(), "rank")));
  const auto free = output.free_bytes();
  console.say(fmt::format("OUT holds {}; its file system has {} free", output.holds(),
                          free ? human_bytes(*free) : "an unknown number of bytes"));
  console.say(fmt::format("would write {}, {} before compression{}",
                          count_of(static_cast<uint64_t>(plan.files()), "layer file"),
                          human_bytes(plan.data_bytes()),
                          others == 0 ? ""
                                      : fmt::format(", and {}, {}", count_of(others, "other file"),
                                                    human_bytes(plan.rest.bytes()))));
  console.say_next("the same without --dry-run");
}

// Whether ranks of OUT are still to be made, by --rank.
bool lacks_ranks(const std::filesystem::path& out) {
  try {
    return !missing_ranks(out, read_manifests(find_blobs(out))).empty();
  } catch (const Error&) {
    return true;  // another process writes one
  }
}

// What to do behind a shard: finalize puts together what is there only if all shards are.
std::string shard_step(const std::filesystem::path& output, const std::string& out) {
  std::string finalize = fmt::format("mxfp4-repack finalize {}", out);
  try {
    const std::vector<JournalContent> shards = read_journals(sibling_of(output));
    if (shards.empty() ||
        std::ranges::count(shards, true, &JournalContent::ready) >= shards.front().shard->count) {
      return finalize;
    }
    return fmt::format("the other shards, {}; then {}", shards_text(shards), finalize);
  } catch (const Error&) {
    return finalize;
  }
}

// What checks the result.
std::string check_command(const ConvertOptions& options, bool whole, const std::string& out) {
  if (!whole) return shard_step(options.output, out);
  const bool some = options.deployment.rank && lacks_ranks(options.output);
  return fmt::format("mxfp4-repack verify {}{}", out, some ? " --some-ranks" : "");
}

// `model`: that an engine loads, or empty.
void print_summary(const ConvertOptions& options, const RepackPlan& plan,
                   const RepackResult& result, double seconds, const std::filesystem::path& model,
                   const Console& console) {
  const Manifest& manifest = plan.common;
  if (console.json()) {
    Json json = json_document("convert");
    json["dry_run"] = false;
    json["output"] = options.output.string();
    json["complete"] = options.shard.empty();
    json["backend"] = backend_name(manifest.target.backend);
    json["layout"] = manifest.layout;
    json["num_ranks"] = plan.manifests.size();
    json["num_layer_files"] = result.files;
    json["num_kept_files"] = result.kept;
    json["num_rest_files"] = result.rest_files;
    json["data_bytes"] = result.data_bytes;
    json["stored_bytes"] = result.written_bytes;
    json["elapsed_seconds"] = seconds;
    console.result_json(json);
    return;
  }
  const std::string out = shell_word(options.output.string());
  console.detail(fmt::format("{} before compression", human_bytes(result.data_bytes)));
  console.say(fmt::format(
      "{}: {} for {}, {}{}", out, count_of(static_cast<uint64_t>(result.files), "layer file"),
      backend_name(manifest.target.backend), pace(result.written_bytes, result.data_bytes, seconds),
      result.kept == 0 ? "" : fmt::format(", {} kept", result.kept)));
  if (options.shard.empty()) {
    say_serve(serve_line(plan.manifests.front(), options.output, model), console);
  }
  console.say_next(check_command(options, options.shard.empty(), out));
}

// Says that there is nothing to do. A shard may be complete though OUT is not.
int already_complete(const ConvertOptions& options, const std::optional<Shard>& shard,
                     const Console& console) {
  const bool whole = !shard || !find_blobs(options.output).empty();
  if (console.json()) {
    Json json = json_document("convert");
    json["dry_run"] = options.dry_run;
    json["output"] = options.output.string();
    json["complete"] = whole;
    json["already_complete"] = true;
    console.result_json(json);
    return kOk;
  }
  const std::string out = shell_word(options.output.string());
  std::string what = "complete already";
  if (shard) {
    const std::string name = fmt::format("{}/{}", shard->index, shard->count);
    what = whole ? fmt::format("complete already, the layers of shard {} included", name)
                 : fmt::format("shard {} is complete already", name);
  }
  console.say(fmt::format("{}: {}, nothing to do", out, what));
  console.say_next(check_command(options, whole, out));
  return kOk;
}

// Says how much of an interrupted run --resume will find.
void report_unfinished(const std::filesystem::path& output, const Console& console) {
  try {
    refuse_unfinished(output);
  } catch (const Error& error) {
    console.note(error.what());
  }
}

// Moves every byte, and returns how many seconds that took.
double run_repack(Repack& repack, const std::filesystem::path& output, const Console& console) {
  Progress progress(console, repack.bytes_to_move());
  try {
    repack.run({.progress = [&](int64_t bytes) { progress.advance(bytes); },
                .check_stop = check_interrupted});
  } catch (const Interrupted&) {
    progress.finish();
    report_unfinished(output, console);
    throw;
  }
  progress.finish();
  return progress.seconds();
}

}  // namespace

int run_convert(const ConvertOptions& options, const Console& console) {
  check_flags(options);
  RepackOptions repack_as = repack_options(options);
  ConversionRequest request = request_from(options.deployment);
  report_given_facts(options.deployment, *request.rules, console);
  request.stop_at_loaded = options.emit == "loaded";

  // Open: read headers; names, sizes and places of the experts agree.
  const CheckpointOptions input = checkpoint_from(options.input, request.family);
  OpenedCheckpoint checkpoint = open_checkpoint(input, *request.rules);
  // The directory of an HDF5 file is not a checkpoint that a blob's folder could spoil.
  if (checkpoint.source->kind() != "hdf5") {
    refuse_blob_folder_in(checkpoint.path, options.output);
  }

  // Decide: find a backend, a layout that takes these sizes, and a slice for each rank.
  const Conversion conversion = conversion_for(options.deployment, request, &checkpoint);
  report_given_versions(options.deployment, conversion, console);
  report_assumed_rules(options.deployment, *request.rules, console);
  report_decision(conversion, console);
  require_conversion(conversion);

  // Plan every file, tensor and offset. Nothing is written until here.
  repack_as.also_serves = also_serves(request, conversion, checkpoint);
  repack_as.asked = request_text(request, input.style);
  RepackPlan plan = plan_repack(checkpoint, conversion, repack_as);
  for (const std::string& warning : plan.warnings) console.warn(warning);
  // From here on a signal leaves no half-made file, and --resume can go on after it.
  watch_signals("--resume goes on from what is complete");
  keep_private(checkpoint.source->files());
  keep_private(plan.side_files);

  // Open the output: from here on no other process writes OUT.
  ConversionOutput output({.output = options.output,
                           .input = options.input.path,
                           .inputs = plan.inputs,
                           .side_files = plan.side_files,
                           .include_rest = options.include_rest,
                           .resume = options.resume,
                           .force = options.force,
                           .check = options.check,
                           .read_back = options.read_back,
                           .look_only = options.dry_run,
                           .shard = repack_as.shard,
                           .between = check_interrupted},
                          plan.manifests, *checkpoint.source);
  if (output.complete()) {
    if (!output.leftover().empty()) console.warn(output.leftover());
    return already_complete(options, repack_as.shard, console);
  }
  for (const std::string& damage : output.damages()) console.warn(damage + "; made again");
  if (options.dry_run) {
    leave_out_recorded(plan, output);
    output.reserve(plan.data_bytes() + plan.rest.bytes());
    print_plan(plan, conversion, output, options.output, console);
    return kOk;
  }

  // Run: write every layer file that no earlier run finished.
  Repack repack(checkpoint, conversion, plan, output, repack_as);
  if (options.resume) {
    console.note(fmt::format("{}: {} of {} layer files are complete; the others are written",
                             options.output.string(), repack.kept(), plan.files()));
  }
  const double seconds = run_repack(repack, options.output, console);

  // Commit: write the manifests last, which completes OUT.
  const RepackResult result = repack.commit();
  say_summary(console, [&] {
    for (const std::string& warning : result.warnings) console.warn(warning);
    print_summary(options, plan, result, seconds,
                  model_to_serve(*checkpoint.source, options.input.path), console);
  });
  return kOk;
}

}  // namespace mxfp4
