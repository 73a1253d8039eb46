// inspect: shows what is in a checkpoint or a blob. Reads headers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "apps/blobs.hpp"
#include "apps/commands.hpp"
#include "apps/request.hpp"
#include "apps/screen.hpp"
#include "apps/serve_line.hpp"
#include "apps/text_layout.hpp"
#include "formats/blob/blob_check.hpp"
#include "formats/blob/blob_files.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/decision/contents.hpp"
#include "formats/output/unfinished.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/output.hpp"
#include "lib/plan/plan.hpp"

namespace mxfp4 {
namespace {

Json layer_sizes_json(const std::vector<LayerSize>& layers) {
  Json json = Json::array();
  for (const LayerSize& layer : layers) {
    json.push_back({{"layer", layer.layer},
                    {"num_experts", layer.dims.num_experts},
                    {"hidden_size", layer.dims.hidden_size},
                    {"intermediate_size", layer.dims.intermediate_size},
                    {"data_bytes", layer.data_bytes},
                    {"stored_bytes", layer.stored_bytes}});
  }
  return json;
}

// Adds the members "totals", an object by kind, and "tensors", a list of objects.
void add_tensors(Json& json, const std::vector<LayerTensor>& tensors) {
  Json& totals = json["totals"] = Json::object();
  for (TensorKind kind : kAllTensorKinds) {
    const ByteSizes total = total_of(tensors, kind);
    totals[std::string(tensor_kind_name(kind))] = {{"data_bytes", total.data_bytes},
                                                   {"stored_bytes", total.stored_bytes}};
  }
  Json& list = json["tensors"] = Json::array();
  for (const LayerTensor& tensor : tensors) {
    list.push_back({{"layer", tensor.layer},
                    {"name", tensor.name},
                    {"kind", tensor_kind_name(tensor.kind)},
                    {"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"strides", tensor.strides.empty() ? Json() : Json(tensor.strides)},
                    {"data_bytes", tensor.data_bytes},
                    {"stored_bytes", tensor.stored_bytes}});
  }
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

// A checkpoint is described like a blob with one rank, with some members that a blob does not have.
Json describe_input(const OpenedCheckpoint& input, const std::vector<LayerTensor>* tensors) {
  const LayerDims dims = common_dims(input.model);
  const std::vector<LayerSize> layers = layer_sizes(input.model);
  const std::string model_type = input.config ? input.config->model_type : "";
  int64_t others = 0;
  for (size_t index : input.model.rest) others += input.source->tensors()[index].spec.bytes();
  Json json = json_document("inspect");
  json["kind"] = input.source->kind();
  json["num_files"] = input.source->files().size();
  json["model_type"] = text_or_null(model_type);
  json["style"] = style_name(input.model.style);
  json["family"] = family_name(input.model.family);
  json["w13_order"] = w13_order_name(input.model.order);
  json["layers"] = layer_numbers(layers);
  json["num_experts"] = dims.num_experts;
  json["hidden_size"] = dims.hidden_size;
  json["intermediate_size"] = dims.intermediate_size;
  json["expert_bytes"] = total_of(layers).data_bytes;
  json["num_other_tensors"] = input.model.rest.size();
  json["other_bytes"] = others;
  Json part = describe_part(input.path, layers);
  for (const char* name : {"backend", "layout", "platform", "arch", "revision", "parallel"}) {
    part[name] = nullptr;
  }
  part["rank"] = 0;
  part["num_ranks"] = 1;
  part["source"] = source_json(input.source->kind(), model_type);
  for (const FileStatus& file : input.source->files()) {
    part["source"]["files"].push_back(
        {{"name", file.path.filename().string()}, {"file_bytes", file.size}});
  }
  if (tensors != nullptr) add_tensors(part, *tensors);
  part["warnings"] = input.model.warnings;
  json["ranks"] = Json::array({std::move(part)});
  return json;
}

// What convert would do with these flags. Refuses in its words.
Json describe_target(const InspectOptions& options, const ConversionRequest& request,
                     const OpenedCheckpoint& input, const Console& console) {
  const Conversion conversion = conversion_for(options.input, request, &input);
  require_conversion(conversion);
  report_versions(options.input, conversion, console);
  report_rules(options.input, *request.rules, std::nullopt, console);
  for (const std::string& note : conversion.decision.notes) console.warn(note);
  for (const std::string& defect : conversion.defects) console.warn(defect);
  const Plan plan = make_plan(input.model, conversion.ranks, plan_options(conversion));
  const auto loaded = static_cast<double>(total_of(layer_sizes(input.model)).data_bytes);
  const LayerDims& padded = conversion.ranks.front().padded;
  Json target;
  target["backend"] = backend_name(conversion.target.backend);
  target["layout"] = id_of(*conversion.layout);
  target["num_ranks"] = conversion.ranks.size();
  target["padded_hidden_size"] = padded.hidden_size;
  target["padded_intermediate_size"] = padded.intermediate_size;
  target["data_bytes"] = plan.output_bytes;
  target["overhead_percent"] = 100.0 * (static_cast<double>(plan.output_bytes) / loaded - 1.0);
  target["defects"] = conversion.defects;
  Json& tensors = target["tensors"] = Json::array();
  for (const PlannedTensor& tensor : plan.files.front().tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"dtype", dtype_name(tensor.spec.dtype)},
                       {"shape", std::vector<int64_t>(tensor.spec.shape.dims().begin(),
                                                      tensor.spec.shape.dims().end())},
                       {"data_bytes", tensor.bytes}});
  }
  return target;
}

Json describe_blob(const std::filesystem::path& blob, const Manifest& manifest) {
  Json item = describe_part(blob, layer_sizes(manifest));
  item["backend"] = backend_name(manifest.target.backend);
  item["layout"] = manifest.layout;
  item["platform"] = platform_name(manifest.target.platform);
  item["arch"] = manifest.target.arch;
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

// The tables of one rank: its layers, and the tensors if they are listed.
std::string part_text(const Console& console, const Json& part) {
  std::string out = "\n" + table_text(console, part["layer_sizes"],
                                      {"layer", "num_experts", "hidden_size", "intermediate_size",
                                       "data_bytes", "stored_bytes"});
  if (!part.contains("tensors")) return out;
  Json totals = Json::array();
  for (const auto& [kind, bytes] : part["totals"].items()) {
    totals.push_back({{"kind", kind}});
    totals.back().update(bytes);
  }
  return out + "\n" +
         table_text(console, part["tensors"],
                    {"name", "dtype", "data_bytes", "stored_bytes", "shape"}) +
         "\n" + table_text(console, totals, {"kind", "data_bytes", "stored_bytes"});
}

// What all ranks have in common, taken from the first, then a line for each.
std::string blob_text(const Console& console, const Json& document) {
  const Json& ranks = document["ranks"];
  Json common = ranks.front();
  for (const char* name : {"findings", "totals"}) common.erase(name);
  if (ranks.size() > 1) {
    for (const char* name : {"path", "rank", "data_bytes", "stored_bytes"}) common.erase(name);
  }
  if (common.contains("serves") && common["serves"].is_null()) common["serves"] = "not known";
  std::string out = fields_text(console, common);
  if (ranks.size() == 1) return out + part_text(console, ranks.front());
  out += "\n" + table_text(console, ranks, {"rank", "data_bytes", "stored_bytes", "path"});
  // Without --tensors the ranks' layers are alike.
  const bool all = ranks.front().contains("tensors");
  for (size_t i = 0; i < (all ? ranks.size() : 1); ++i) {
    out += "\n" + console.bold(ranks[i]["path"].get<std::string>()) + part_text(console, ranks[i]);
  }
  return out;
}

int inspect_blob(const std::vector<std::filesystem::path>& blobs, const InspectOptions& asked,
                 const Console& console) {
  const std::string revision = asked.input.text("revision");
  const std::vector<Manifest> manifests = read_manifests(blobs);
  for (const std::string& finding : check_ranks(blobs, manifests)) console.warn(finding);
  warn_of_missing_ranks(asked.input.path, manifests, console);
  const bool asks = !revision.empty();
  const Fits answer =
      asks ? fits(fit_question(asked.input, manifests.front()), {blobs, manifests}) : Fits();
  Json document = json_document("inspect");
  document["kind"] = "blob";
  for (size_t i = 0; i < blobs.size(); ++i) {
    Json item = describe_blob(blobs[i], manifests[i]);
    std::vector<std::string> findings = check_blob_files(blobs[i], manifests[i]);
    std::ranges::move(check_layer_sizes(blobs[i], manifests[i]), std::back_inserter(findings));
    for (const std::string& finding : findings) console.warn(finding);
    item["findings"] = findings;
    if (asked.tensors || asked.layer) {
      add_tensors(item, blob_tensors(blobs[i], manifests[i], asked.layer));
    }
    if (asks) {
      item["asked_revision"] = revision;
      item["serves"] = answer.fit == Fit::kNotKnown ? Json() : Json(answer.fit == Fit::kYes);
      item["reasons"] = answer.reasons;
    }
    document["ranks"].push_back(std::move(item));
  }
  const std::vector<std::string> parts = serve_line(manifests.front(), asked.input.path);
  const std::string serve = fmt::format("{}", fmt::join(parts, " "));
  document["serve"] = text_or_null(serve);
  if (console.json()) {
    console.result_json(std::move(document));
  } else if (!asked.serve) {
    std::string text = blob_text(console, document);
    if (!parts.empty()) {
      text += '\n';
      append_command(text, "serve: ", 7, parts);  // in lines that a shell puts together
    }
    console.result(text);
  } else if (serve.empty()) {
    throw Error::unsupported("no engine takes this blob by itself")
        .in_file(asked.input.path.string())
        .hint("mxfp4-repack explain says which backend an engine chooses");
  } else {
    console.result(serve + "\n");
  }
  return exit_code_of(answer.fit);
}

// Whether a flag asks about the machine that will serve, and not only about the checkpoint.
bool asks_for_target(const InspectOptions& options) {
  static const std::set<std::string> kOfCheckpoint = {kInputName,  "--style",  "--model-config",
                                                      "--layers",  "--family", "--revision",
                                                      "--tensors", "--layer",  "--serve"};
  return !std::ranges::all_of(options.input.given,
                              [](const std::string& name) { return kOfCheckpoint.contains(name); });
}

}  // namespace

int run_inspect(const InspectOptions& given, const Console& console) {
  // Find out whether the input is a blob, which is described by its manifests.
  InspectOptions options = given;
  options.input.path = whole_of(given.input.path);
  refuse_unfinished(options.input.path);
  const std::vector<std::filesystem::path> blobs = find_blobs(options.input.path);
  if (!blobs.empty()) {
    options.input.require_useful({kInputName, "--revision", "--tensors", "--layer", "--serve"},
                                 "with a blob",
                                 "mxfp4-repack fits says whether a blob fits a deployment");
    return inspect_blob(blobs, options, console);
  }

  // Open: the input is a checkpoint. Read its headers.
  if (options.serve) {
    throw Error::usage("--serve: the input is a checkpoint, not a blob")
        .hint("mxfp4-repack explain ends with the line that serves a checkpoint");
  }
  const RuleSet& rules = rules_for(options.input, std::nullopt);
  const CheckpointRequest question = request_from(options.input, rules, std::nullopt);
  report_given_facts(options.input, rules, console);
  const OpenedCheckpoint input = open_checkpoint(question.checkpoint, rules);
  std::vector<LayerTensor> tensors;
  const bool lists = options.tensors || options.layer;
  if (lists) tensors = checkpoint_tensors(input, options.layer);
  Json document = describe_input(input, lists ? &tensors : nullptr);
  for (const std::string& warning : input.model.warnings) console.warn(warning);

  // Decide and plan as convert does, if a flag asks for it.
  if (asks_for_target(options)) {
    document["target"] = describe_target(options, question.request, input, console);
  }
  if (console.json()) {
    console.result_json(std::move(document));
    return kOk;
  }
  Json shown = document;
  for (const char* name : {"schema_version", "command", "target"}) shown.erase(name);
  std::string text = fields_text(console, shown) + part_text(console, document["ranks"].front());
  if (document.contains("target")) {
    Json& target = document["target"];
    text += "\n" + console.bold("target") + "\n" + fields_text(console, target) + "\n" +
            table_text(console, target["tensors"], {"name", "dtype", "data_bytes", "shape"});
  }
  console.result(text);
  return kOk;
}

}  // namespace mxfp4
