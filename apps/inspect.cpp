// inspect: shows what is in a checkpoint or a blob. Reads headers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "apps/blobs.hpp"
#include "apps/commands.hpp"
#include "apps/fit_words.hpp"
#include "apps/given_facts.hpp"
#include "apps/inspect_layers.hpp"
#include "apps/inspect_tensors.hpp"
#include "apps/json_output.hpp"
#include "apps/request.hpp"
#include "apps/serve_line.hpp"
#include "apps/text_layout.hpp"
#include "formats/blob/blob_check.hpp"
#include "formats/blob/blob_files.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/decision/unfinished.hpp"
#include "lib/core/error.hpp"
#include "lib/core/parallel_text.hpp"
#include "lib/core/text.hpp"
#include "lib/layouts/output.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {
namespace {

using Rows = std::vector<std::vector<std::string>>;

int64_t rest_bytes(const OpenedCheckpoint& input) {
  int64_t total = 0;
  for (size_t index : input.model.rest) total += input.source->tensors()[index].spec.bytes();
  return total;
}

// The members that a checkpoint and every rank of a blob have in common.
Json describe_part(const std::filesystem::path& path, const std::vector<LayerSize>& layers) {
  Json part;
  part["path"] = path.string();
  part["layers"] = layer_numbers(layers);
  part["layer_sizes"] = layer_sizes_json(layers);
  part["data_bytes"] = total_of(layers).data_bytes;
  part["stored_bytes"] = total_of(layers).stored_bytes;
  return part;
}

Json source_json(std::string_view kind, const std::string& model_type) {
  return {{"kind", kind}, {"model_type", text_or_null(model_type)}, {"files", Json::array()}};
}

std::string model_type_of(const OpenedCheckpoint& input) {
  return input.config ? input.config->model_type : "";
}

// A checkpoint is described like a blob with one rank, with some members that a blob does not have.
Json describe_input(const OpenedCheckpoint& input, const std::vector<LayerTensor>* tensors) {
  const LayerDims dims = common_dims(input.model);
  const std::vector<LayerSize> layers = layer_sizes(input.model);
  Json json = json_document("inspect");
  json["kind"] = input.source->kind();
  json["num_files"] = input.source->files().size();
  json["model_type"] = text_or_null(model_type_of(input));
  json["style"] = style_name(input.model.style);
  json["family"] = family_name(input.model.family);
  json["w13_order"] = w13_order_name(input.model.order);
  json["layers"] = layer_numbers(layers);
  json["num_experts"] = dims.num_experts;
  json["hidden_size"] = dims.hidden_size;
  json["intermediate_size"] = dims.intermediate_size;
  json["expert_bytes"] = total_of(layers).data_bytes;
  json["num_other_tensors"] = input.model.rest.size();
  json["other_bytes"] = rest_bytes(input);
  Json part = describe_part(input.path, layers);
  for (const char* name : {"backend", "layout", "revision", "parallel"}) part[name] = nullptr;
  part["rank"] = 0;
  part["num_ranks"] = 1;
  part["source"] = source_json(input.source->kind(), model_type_of(input));
  for (const FileStatus& file : input.source->files()) {
    part["source"]["files"].push_back(
        {{"name", file.path.filename().string()}, {"file_bytes", file.size}});
  }
  if (tensors != nullptr) add_tensors(part, *tensors);
  part["warnings"] = input.model.warnings;
  json["ranks"] = Json::array({std::move(part)});
  return json;
}

Rows input_rows(const OpenedCheckpoint& input) {
  const LayerDims dims = common_dims(input.model);
  const std::vector<LayerSize> layers = layer_sizes(input.model);
  const ModelLayers& model = input.model;
  Rows rows{{"what", "value"}};
  rows.push_back(
      {"container", fmt::format("{}, {} file{}", input.source->kind(), input.source->files().size(),
                                input.source->files().size() == 1 ? "" : "s")});
  if (input.config && !input.config->model_type.empty()) {
    rows.push_back({"model type", input.config->model_type});
  }
  rows.push_back({"style", std::string(style_name(model.style))});
  rows.push_back({"family", fmt::format("{}, w13 rows {}", family_name(model.family),
                                        w13_order_name(model.order))});
  rows.push_back(
      {"MoE layers", fmt::format("{} ({})", layers.size(), number_ranges(layer_numbers(layers)))});
  rows.push_back({"experts", fmt::format("{}", dims.num_experts)});
  rows.push_back({"hidden size H", fmt::format("{}", dims.hidden_size)});
  rows.push_back({"intermediate I", fmt::format("{}", dims.intermediate_size)});
  rows.push_back({"expert weights", human_bytes(total_of(layers).data_bytes)});
  rows.push_back({"not converted", fmt::format("{} other tensors, {}", model.rest.size(),
                                               human_bytes(rest_bytes(input)))});
  return rows;
}

// The tensors of one planned layer.
Rows tensor_rows(const Plan& plan) {
  Rows rows{{"output tensor", "dtype", "bytes a layer", "shape"}};
  for (const PlannedTensor& tensor : plan.files.front().tensors) {
    rows.push_back({(*plan.files.front().outputs)[tensor.output].name,
                    std::string(dtype_name(tensor.spec.dtype)), human_bytes(tensor.bytes),
                    tensor.spec.shape.to_string()});
  }
  return rows;
}

// Describes what convert would do with these flags: as text, or with --json in `json`.
std::string inspect_target(const InspectOptions& options, const ConversionRequest& request,
                           const OpenedCheckpoint& input, const Console& console, Json& json) {
  const Conversion conversion = conversion_for(options.deployment, request, &input);
  require_conversion(conversion);
  report_given_versions(options.deployment, conversion, console);
  report_assumed_rules(options.deployment, *request.rules, console);
  for (const std::string& note : conversion.decision.notes) console.warn(note);
  const std::vector<RankSlice>& ranks = conversion.ranks;
  const Plan plan = make_plan(input.model, ranks, plan_options(conversion));
  const int64_t loaded = total_of(layer_sizes(input.model)).data_bytes;
  const double overhead =
      100.0 * (static_cast<double>(plan.output_bytes) / static_cast<double>(loaded) - 1.0);
  for (const std::string& defect : conversion.defects) console.warn(defect);
  const LayerDims& padded = ranks.front().padded;
  if (console.json()) {
    Json& target = json["target"];
    target["backend"] = backend_name(conversion.target.backend);
    target["layout"] = id_of(*conversion.layout);
    target["num_ranks"] = ranks.size();
    target["padded_hidden_size"] = padded.hidden_size;
    target["padded_intermediate_size"] = padded.intermediate_size;
    target["data_bytes"] = plan.output_bytes;
    target["overhead_percent"] = overhead;
    target["defects"] = conversion.defects;
    Json& tensors = target["tensors"] = Json::array();
    for (const PlannedTensor& tensor : plan.files.front().tensors) {
      tensors.push_back({{"name", tensor.name},
                         {"dtype", dtype_name(tensor.spec.dtype)},
                         {"shape", std::vector<int64_t>(tensor.spec.shape.dims().begin(),
                                                        tensor.spec.shape.dims().end())},
                         {"data_bytes", tensor.bytes}});
    }
    return "";
  }
  Rows rows{{"target", "value"}};
  rows.push_back({"backend", std::string(backend_name(conversion.target.backend))});
  rows.push_back({"layout", std::string(id_of(*conversion.layout))});
  rows.push_back({"padded sizes",
                  fmt::format("H {}, I {} a rank", padded.hidden_size, padded.intermediate_size)});
  rows.push_back({"ranks", fmt::format("{}", ranks.size())});
  rows.push_back(
      {"output",
       fmt::format("{} before compression ({:+.1f} %), {} a rank", human_bytes(plan.output_bytes),
                   overhead, human_bytes(plan.output_bytes / static_cast<int64_t>(ranks.size())))});
  return "\n" + console.table(rows) + "\n" + console.table(tensor_rows(plan));
}

bool lists_tensors(const InspectOptions& options) { return options.tensors || options.layer; }

Json describe_blob(const std::filesystem::path& blob, const Manifest& manifest) {
  Json item = describe_part(blob, layer_sizes(manifest));
  item["backend"] = backend_name(manifest.target.backend);
  item["layout"] = manifest.layout;
  item["revision"] = manifest.revision;
  item["rank"] = manifest.rank.rank;
  item["num_ranks"] = manifest.rank.num_ranks;
  item["parallel"] = {{"tp", manifest.parallel.tp_size},
                      {"dp", manifest.parallel.dp_size},
                      {"pcp", manifest.parallel.pcp_size},
                      {"enable_expert_parallel", manifest.parallel.enable_expert_parallel}};
  const SourceSummary& source = manifest.source;
  item["source"] = source_json(source.kind, source.model_type);
  for (const SourceFile& file : source.files) {
    item["source"]["files"].push_back({{"name", file.name}, {"file_bytes", file.size}});
  }
  item["warnings"] = manifest.warnings;
  return item;
}

// What all ranks have in common, taken from the first.
Rows blob_rows(const std::vector<std::filesystem::path>& blobs,
               const std::vector<Manifest>& manifests) {
  const Manifest& first = manifests.front();
  const std::vector<LayerSize> layers = layer_sizes(first);
  const size_t ranks = manifests.size();
  Rows rows{{"blob", "value"}};
  rows.push_back(
      {"path", ranks == 1 ? blobs.front().string() : blobs.front().parent_path().string()});
  rows.push_back({"backend", std::string(backend_name(first.target.backend))});
  rows.push_back({"layout", first.layout});
  rows.push_back(
      {"made for", fmt::format("{} {}", platform_name(first.target.platform), first.target.arch)});
  rows.push_back({"revision", first.revision});
  rows.push_back({"parallel", parallel_text(first.parallel)});
  const SourceSummary& source = first.source;
  rows.push_back(
      {"source", fmt::format("{}{}, {}", source.model_type,
                             source.model_type.empty() ? source.kind : ", " + source.kind,
                             count_of(source.files.size(), "file"))});
  rows.push_back(
      {"layers", fmt::format("{} ({})", layers.size(), number_ranges(layer_numbers(layers)))});
  if (ranks == 1) {
    rows.push_back({"rank", fmt::format("{} of {}, {} experts", first.rank.rank,
                                        first.rank.num_ranks, first.rank.experts.size())});
    rows.push_back(
        {"stored", fmt::format("{}, {} of tensors", human_bytes(total_of(layers).stored_bytes),
                               human_bytes(total_of(layers).data_bytes))});
  }
  std::set<std::string> warnings;
  for (const Manifest& manifest : manifests) {
    warnings.insert(manifest.warnings.begin(), manifest.warnings.end());
  }
  for (const std::string& warning : warnings) rows.push_back({"warning", warning});
  return rows;
}

Rows rank_rows(const std::vector<std::filesystem::path>& blobs,
               const std::vector<Manifest>& manifests) {
  Rows rows{{"rank", "experts", "stored", "of tensors", "directory"}};
  for (size_t i = 0; i < blobs.size(); ++i) {
    const std::vector<LayerSize> layers = layer_sizes(manifests[i]);
    const RankSlice& rank = manifests[i].rank;
    rows.push_back({fmt::format("{} of {}", rank.rank, rank.num_ranks),
                    fmt::format("{}", rank.experts.size()),
                    human_bytes(total_of(layers).stored_bytes),
                    human_bytes(total_of(layers).data_bytes), blobs[i].filename().string()});
  }
  return rows;
}

std::string_view serves_word(Fit fit) {
  if (fit == Fit::kNotKnown) return "not known";
  return fit == Fit::kYes ? "yes" : "no";
}

int inspect_blob(const std::vector<std::filesystem::path>& blobs, const InspectOptions& asked,
                 const Console& console) {
  const RequestFlags& options = asked.deployment;
  const std::vector<Manifest> manifests = read_manifests(blobs);
  for (const std::string& finding : check_ranks(blobs, manifests)) console.warn(finding);
  warn_of_missing_ranks(asked.input.path, manifests, console);
  Json list = Json::array();
  Rows rows = blob_rows(blobs, manifests);
  const bool asks = !options.revision.empty();
  const Fits answer =
      asks ? fits(fit_question(options, manifests.front()), {blobs, manifests}) : Fits();
  std::string tensors_shown;
  for (size_t i = 0; i < blobs.size(); ++i) {
    Json item = describe_blob(blobs[i], manifests[i]);
    std::vector<std::string> findings = check_blob_files(blobs[i], manifests[i]);
    for (std::string& finding : check_layer_sizes(blobs[i], manifests[i])) {
      findings.push_back(std::move(finding));
    }
    for (const std::string& finding : findings) console.warn(finding);
    item["findings"] = findings;
    if (lists_tensors(asked)) {
      const std::vector<LayerTensor> tensors = blob_tensors(blobs[i], manifests[i], asked.layer);
      add_tensors(item, tensors);
      if (blobs.size() > 1) tensors_shown += "\n" + console.bold(blobs[i].filename().string());
      tensors_shown += tensors_text(console, tensors);
    }
    if (asks) {
      item["asked_revision"] = options.revision;
      item["serves"] = answer.fit == Fit::kNotKnown ? Json() : Json(answer.fit == Fit::kYes);
      item["reasons"] = answer.reasons;
    }
    list.push_back(std::move(item));
  }
  if (asks) {
    rows.push_back({"serves", fmt::format("{}: {}", options.revision, serves_word(answer.fit))});
    for (const std::string& reason : answer.reasons) rows.push_back({"because", reason});
  }
  const std::string serve =
      fmt::format("{}", fmt::join(serve_line(manifests.front(), asked.input.path), " "));
  if (console.json()) {
    Json json = json_document("inspect");
    json["kind"] = "blob";
    json["ranks"] = std::move(list);
    json["serve"] = text_or_null(serve);
    console.result_json(std::move(json));
    return exit_code_of(answer.fit);
  }
  if (asked.serve) {
    if (serve.empty()) {
      throw Error::unsupported("no engine takes this blob by itself")
          .in_file(asked.input.path.string())
          .hint("mxfp4-repack explain says which backend an engine chooses");
    }
    console.result(serve + "\n");
    return exit_code_of(answer.fit);
  }
  if (!serve.empty()) rows.push_back({"serve", serve});
  std::string text = console.table(rows);
  if (blobs.size() > 1) text += "\n" + console.table(rank_rows(blobs, manifests));
  if (blobs.size() > 1) text += "\n" + console.bold(blobs.front().filename().string());
  text += "\n" + layer_sizes_text(console, layer_sizes(manifests.front()));
  console.result(text + tensors_shown);
  return exit_code_of(answer.fit);
}

// Whether a flag asks about the machine that will serve, and not only about the checkpoint.
bool asks_for_target(const InspectOptions& options) {
  static const std::set<std::string> kOfCheckpoint = {kInputName,  "--style",  "--model-config",
                                                      "--layers",  "--family", "--revision",
                                                      "--tensors", "--layer",  "--serve"};
  return !std::ranges::all_of(
      options.given, [](const GivenFlag& flag) { return kOfCheckpoint.contains(flag.name); });
}

}  // namespace

int run_inspect(const InspectOptions& given, const Console& console) {
  // Find out whether the input is a blob, which is described by its manifests.
  InspectOptions options = given;
  options.input.path = whole_of(given.input.path, options.layer);
  if (is_listed_file(given.input.path)) {
    console.note(
        fmt::format("{}: one file of a checkpoint; all of it is shown", given.input.path.string()));
  }
  refuse_unfinished(options.input.path);
  const std::vector<std::filesystem::path> blobs = find_blobs(options.input.path);
  if (!blobs.empty()) {
    require_useful(options.given, {kInputName, "--revision", "--tensors", "--layer", "--serve"},
                   "with a blob",
                   fmt::format("mxfp4-repack fits {} {} says whether the blob fits a deployment",
                               shell_word(options.input.path.string()),
                               fmt::join(as_typed(flags_for_fits(options.given)), " ")));
    return inspect_blob(blobs, options, console);
  }

  // Open: the input is a checkpoint. Read its headers.
  const ConversionRequest request = request_from(options.deployment);
  report_given_facts(options.deployment, *request.rules, console);
  const OpenedCheckpoint input =
      open_checkpoint(checkpoint_from(options.input, request.family), *request.rules);
  std::vector<LayerTensor> tensors;
  if (lists_tensors(options)) tensors = checkpoint_tensors(input, options.layer);
  Json json;
  std::string text;
  if (console.json()) {
    json = describe_input(input, lists_tensors(options) ? &tensors : nullptr);
  } else {
    text = console.table(input_rows(input)) + "\n" +
           layer_sizes_text(console, layer_sizes(input.model));
    if (lists_tensors(options)) text += tensors_text(console, tensors);
  }
  for (const std::string& warning : input.model.warnings) console.warn(warning);

  // Decide and plan as convert does, if a flag asks for it, and refuse in the same words.
  if (asks_for_target(options)) text += inspect_target(options, request, input, console, json);
  if (console.json()) {
    console.result_json(json);
  } else {
    console.result(text);
  }
  return kOk;
}

}  // namespace mxfp4
