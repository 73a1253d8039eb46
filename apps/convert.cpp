// convert: open, decide, plan, open the output, move the bytes, commit.
#include <fmt/format.h>

#include <algorithm>

#include "apps/commands.hpp"
#include "apps/interrupt.hpp"
#include "apps/json_output.hpp"
#include "apps/request.hpp"
#include "apps/screen.hpp"
#include "apps/serve_line.hpp"
#include "apps/summary.hpp"
#include "apps/text_layout.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/checkpoint/open_source.hpp"
#include "formats/conversion/repack.hpp"
#include "formats/decision/fits.hpp"
#include "formats/decision/recipes.hpp"
#include "formats/decision/request_json.hpp"
#include "formats/os/file.hpp"
#include "formats/output/given_path.hpp"
#include "formats/output/sibling.hpp"
#include "formats/output/unfinished.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kMaxShards = 100'000;

Shard shard_in(const std::string& text) {
  const size_t slash = std::min(text.find('/'), text.size());
  const auto index = whole_number(std::string_view(text).substr(0, slash));
  const auto count = whole_number(std::string_view(text).substr(std::min(slash + 1, text.size())));
  if (index && count && *index < *count && *count <= kMaxShards) return {*index, *count};
  throw Error::usage(fmt::format(
      "--shard: '{}' is not I/N, with I from 0 to N - 1 and N at most {}", text, kMaxShards));
}

void check_flags(const ConvertOptions& options) {
  const bool to_storage = options.output.string().starts_with("s3://") && options.shard.empty();
  if (!to_storage) require_local(options.output);
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
  if (!options.shard.empty()) repack.shard = shard_in(options.shard);
  repack.limits = options.resources;
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
  const LayerDims& padded = conversion.ranks.front().padded;
  const auto free = output.free_bytes();
  Json plan_json = {{"output", where.string()},
                    {"backend", backend_name(plan.common.target.backend)},
                    {"layout", plan.common.layout},
                    {"num_layers", plan.manifests.front().layers.size()},
                    {"num_ranks", conversion.ranks.size()},
                    {"padded_hidden_size", padded.hidden_size},
                    {"padded_intermediate_size", padded.intermediate_size},
                    {"num_layer_files", plan.files()},
                    {"data_bytes", plan.data_bytes()},
                    {"num_rest_files", plan.rest.planned().size()},
                    {"rest_bytes", plan.rest.bytes()},
                    {"free_bytes", free ? Json(*free) : Json()},
                    {"output_holds", output.holds()}};
  if (!console.json()) {
    console.say_lines(fields_text(console, plan_json));
    console.say_next("the same without --dry-run");
    return;
  }
  Json json = json_document("convert");
  json["dry_run"] = true;
  json.update(plan_json);
  console.result_json(std::move(json));
}

// What checks the result. A shard is put together with the others, with other ranks nothing is.
std::string check_command(const ConvertOptions& options, bool whole, const std::string& out) {
  if (!whole) return fmt::format("the other shards, then mxfp4-repack finalize {}", out);
  return fmt::format("mxfp4-repack verify {}{}", out,
                     options.input.members.contains("rank") ? " --some-ranks" : "");
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
  const std::string what =
      whole ? "complete already"
            : fmt::format("shard {}/{} is complete already", shard->index, shard->count);
  console.say(fmt::format("{}: {}, nothing to do", out, what));
  console.say_next(check_command(options, whole, out));
  return kOk;
}

constexpr const char* kAfterwards = "--resume goes on from what is complete";

// Says how much of an interrupted run --resume will find.
void report_unfinished(const std::filesystem::path& output, const Console& console) {
  if (is_address(output)) return;
  try {
    refuse_unfinished(output);
  } catch (const Error& error) {
    console.note(error.what());
  }
}

// Moves every byte in `seconds`, and writes the manifests last, which completes OUT.
RepackResult run_repack(Repack& repack, const std::filesystem::path& output, const Console& console,
                        double& seconds) {
  Progress progress(console, repack.bytes_to_move());
  try {
    repack.run({.progress = [&](int64_t bytes) { progress.advance(bytes); },
                .check_stop = check_interrupted});
    progress.finish();
    seconds = progress.seconds();
    return repack.commit();
  } catch (Error& error) {  // a full disk, say
    if (error.kind() == ErrorKind::kOutput && error.hint_text().empty()) error.hint(kAfterwards);
    throw;
  } catch (const Interrupted&) {
    progress.finish();
    report_unfinished(output, console);
    throw;
  }
}

}  // namespace

int run_convert(const ConvertOptions& options, const Console& console) {
  check_flags(options);
  RepackOptions repack_as = repack_options(options);
  const std::optional<Manifest> blob = blob_at(options.input.path);
  const RuleSet& rules = rules_for(options.input, blob);
  auto [request, input] = request_from(options.input, rules, blob);
  report_given_facts(options.input, rules, console);
  request.stop_at_loaded = options.emit == "loaded";

  // Open: read headers; names, sizes and places of the experts agree.
  OpenedCheckpoint checkpoint = open_checkpoint(input, rules);
  // The directory of an HDF5 file is not a checkpoint that a blob's folder could spoil.
  if (checkpoint.source->kind() != "hdf5") {
    refuse_blob_folder_in(checkpoint.path, options.output);
  }

  // Decide: find a backend, a layout that takes these sizes, and a slice for each rank.
  const Conversion conversion = conversion_for(options.input, request, &checkpoint);
  report_versions(options.input, conversion, console);
  report_rules(options.input, rules, blob, console);
  report_decision(conversion, console);
  require_conversion(conversion);
  if (options.include_rest && rules.engine == Engine::kSglang) {
    throw Error::unsupported("--include-rest: SGLang stops at a model directory with a blob inside")
        .hint("leave it out: the plug-in takes a blob beside the checkpoint");
  }
  const std::string ranks = blob ? other_world(*blob, conversion.deployment.parallel) : "";
  if (!ranks.empty()) console.note(fmt::format("{}: {}", options.input.path.string(), ranks));

  // Plan every file, tensor and offset. Nothing is written until here.
  repack_as.asked = request_text(request, input.style);
  RepackPlan plan =
      plan_repack(checkpoint, conversion.ranks, decided_manifest(conversion), repack_as);
  for (const std::string& warning : plan.warnings) console.warn(warning);
  // From here on a signal leaves no half-made file, and --resume can go on after it.
  watch_signals(kAfterwards);
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
  Repack repack(checkpoint, plan, output, repack_as);
  if (options.resume) {
    console.note(fmt::format("{}: {} of {} layer files are complete; the others are written",
                             options.output.string(), repack.kept(), plan.files()));
  }
  double seconds = 0;
  const RepackResult result = run_repack(repack, options.output, console, seconds);
  say_summary(console, [&] {
    for (const std::string& warning : result.warnings) console.warn(warning);
    print_summary(options, plan, result, seconds,
                  model_to_serve(*checkpoint.source, options.input.path), console);
  });
  return kOk;
}

}  // namespace mxfp4
