// `explain` for one deployment: shows the question, each class with yes or no and the reason, the
// choice and what follows from it, and what to type next.
#include "apps/explain/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "apps/commands.hpp"
#include "apps/request.hpp"
#include "apps/serve_line.hpp"
#include "apps/text_layout.hpp"
#include "formats/checkpoint/blob_source.hpp"
#include "formats/checkpoint/open_source.hpp"
#include "formats/decision/config_only.hpp"
#include "formats/decision/request_json.hpp"
#include "formats/output/given_path.hpp"
#include "formats/remote/files_at.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/output.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

// The part of the question that does not depend on the rules.
struct ExplainCall {
  const ExplainOptions& options;
  std::optional<Manifest> blob = blob_at(options.input.path);  // if the checkpoint is one
  std::shared_ptr<Source> source{};  // opened when it is first needed; null without a checkpoint
};

// What there is to know of a far checkpoint with many tensors but for its config would be megabytes:
// V4-Pro's index and headers are 30. Null where the config does not say enough, or little would come.
std::shared_ptr<Source> open_far_config(const std::filesystem::path& path) {
  constexpr int64_t kManyBytes = int64_t{1} << 20;  // of the index; the headers take twice as many
  const std::filesystem::path index = path / "model.safetensors.index.json";
  const std::filesystem::path config = path / kConfigName;
  if (!is_address(path) || !exists_at(index) || status_at(index).size < kManyBytes) return nullptr;
  try {
    return open_config(text_at(config, kMaxConfigBytes), config);
  } catch (const Error&) {
    return nullptr;
  }
}

// Bytes of all tensors, as the head of the folder's index says; 0 where it does not.
int64_t stated_bytes(const std::filesystem::path& folder) {
  if (!exists_at(folder / kIndexName)) return 0;
  const PositionedFile index = file_at(folder / kIndexName);
  std::string head(static_cast<size_t>(std::min<int64_t>(index.size(), 4096)), '\0');
  index.read(0, std::as_writable_bytes(std::span(head)));
  const size_t key = head.find("\"total_size\"");
  if (key == std::string::npos) return 0;
  return std::strtoll(head.c_str() + head.find(':', key) + 1, nullptr, 10);
}

// Weights, or where there are none only the config.
std::shared_ptr<Source> open_input(const CheckpointOptions& input) {
  if (input.path.empty()) return open_config(*input.config_text, input.config_path);
  const std::filesystem::path path = whole_of(input.path);
  const auto config = config_without_weights(path);
  if (!config) {
    std::shared_ptr<Source> far = open_far_config(path);
    return far ? far : open_source(path);
  }
  return open_config(input.config_text.value_or(read_text_file(*config, kMaxConfigBytes)), *config);
}

// Whether there are weights at the path.
bool names_weights(const std::filesystem::path& path) {
  return !path.empty() && !config_without_weights(path);
}

// The command that converts as it was asked for.
std::vector<std::string> convert_command(const ExplainOptions& options) {
  const std::filesystem::path& path = options.input.path;
  std::vector<std::string> parts{
      fmt::format("mxfp4-repack convert {} -o OUT",
                  names_weights(path) ? shell_word(path.string()) : "CHECKPOINT")};
  for (std::string& words : options.input.typed()) parts.push_back(std::move(words));
  return parts;
}

// Whether the engine's plug-in would make the bytes at each start. `source`: the checkpoint, null
// without weights. SGLang's takes some paths only; formats/loader reads safetensors; an engine starts from
// a directory or a hub's model; and layouts that quantise again are slower to make than to read.
bool starts_without_blob(const Conversion& conversion, const Source* source) {
  if (conversion.refusal || conversion.layout == nullptr || refuses_scales(*conversion.layout) ||
      conversion.rules->engine != Engine::kVllm) {
    return false;
  }
  if (source == nullptr) return true;
  const bool far = source->is_far() && !source->files().empty() &&
                   !source->files().front().path.string().starts_with("hf://");
  return source->kind() == "safetensors" && !far;
}

Explanation explain(const CheckpointRequest& asked, ExplainCall& call) {
  const RequestFlags& flags = call.options.input;
  const auto& [request, given] = asked;
  const RuleSet& rules = *request.rules;
  std::optional<OpenedCheckpoint> checkpoint;
  if (!flags.path.empty() || given.config_text) {
    if (!call.source) call.source = open_input(given);
    checkpoint = open_checkpoint(call.source, given, rules);
  }
  const OpenedCheckpoint* input = checkpoint ? &*checkpoint : nullptr;
  Explanation e{conversion_for(flags, request, input)};
  e.assumed_caller = !checkpoint;
  if (checkpoint) {
    e.imagined = checkpoint->imagined;
    e.warnings = checkpoint->model.warnings;
  }
  if (call.options.against.empty()) {
    if (!e.refusal) e.next = convert_command(call.options);
    // A forced backend is not what the engine chooses, whatever it is told.
    if (!request.backend && starts_without_blob(e, e.imagined ? nullptr : call.source.get())) {
      const std::string text = request_text(request, given.style);
      e.serve =
          serve_line({.engine = rules.engine,
                      .asked = text,
                      .model = names_weights(flags.path) ? served_name(flags.path) : "CHECKPOINT"});
    }
  }
  if (call.options.nodes && checkpoint && !e.refusal) {
    const int64_t stated = e.imagined ? stated_bytes(flags.path) : 0;
    e.reads = node_reads(*checkpoint, e, *call.options.nodes, stated);
    if (stated == 0 && (e.imagined || call.source->origin())) e.reads.front().way = "all experts";
  }
  if (!e.decision.backend) return e;
  if (!call.options.against.empty() && checkpoint && !e.refusal) {
    e.recipes = recipes_of(e, checkpoint->model);
  }
  e.multiples = rounding_multiples(rules, e.caller, e.target);
  return e;
}

// An error is part of the answer: the question may have a name that only another revision knows.
Side explain_side(const RuleSet& rules, ExplainCall& call) {
  try {
    return {rules, explain(request_from(call.options.input, rules, call.blob), call)};
  } catch (const Error& error) {
    return {rules, Explanation(), error};
  }
}

// The rules that --against names, oldest first for "all"; a bare number is a release of the engine
// that is asked.
std::vector<const RuleSet*> rules_against(const RuleSet& rules, const std::string& names,
                                          const Console& console) {
  std::vector<const RuleSet*> found;
  if (names == "all") {
    for (const Release* release : releases_of(rules.engine)) {
      if (const RuleSet& other = rules_of(*release); &other != &rules) found.push_back(&other);
    }
    return found;
  }
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    std::string name = names.substr(begin, end - begin);
    const bool number =
        !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) != 0;
    if (name.empty()) throw Error::usage("--against: a release has no name");
    const std::string engine(number ? engine_name(rules.engine) : "");
    found.push_back(&rules_named(engine, name, console));
    begin = end + 1;
  }
  return found;
}

// The exit code is the one of explain without --against.
int explain_against(const RuleSet& rules, ExplainCall& call, const Console& console) {
  const Side here = explain_side(rules, call);
  std::vector<Side> others;
  for (const RuleSet* other : rules_against(rules, call.options.against, console)) {
    others.push_back(explain_side(*other, call));
  }
  const bool answered =
      !here.error || std::ranges::any_of(others, [](const Side& side) { return !side.error; });
  if (!answered) throw Error(*here.error);
  report_given_facts(call.options.input, rules, console);
  report_rules(call.options.input, rules, call.blob, console);
  const Json document = comparison_json(here, others);
  if (console.json()) {
    console.result_json(document);
  } else {
    console.result(comparison_text(console, document));
  }
  if (here.error) throw Error(*here.error);
  require_conversion(here.explanation);
  return kOk;
}

}  // namespace

int run_explain(const ExplainOptions& options, const Console& console) {
  // Ask: find the rules.
  ExplainCall call{options};
  const RuleSet& rules = rules_for(options.input, call.blob);
  if (!options.batch.empty()) {
    options.input.require_useful({"--batch", "--engine", "--revision"}, "with --batch");
    if (rules.selectors.empty()) {
      throw Error::usage(
          fmt::format("--batch: {} chooses by a checkpoint's config, which a line lacks",
                      engine_title(rules.engine)))
          .hint("explain CHECKPOINT answers for one deployment");
    }
    report_rules(options.input, rules, call.blob, console);
    return explain_batch(rules, options.batch, console.verbose() > 0);
  }
  if (!options.against.empty()) return explain_against(rules, call, console);

  // Look up the flags before the input is opened, so that errors come in the same order as in
  // convert.
  const CheckpointRequest asked = request_from(options.input, rules, call.blob);
  report_given_facts(options.input, rules, console);

  // Open and decide as convert does; without a checkpoint, assume the usual method class.
  Explanation e = explain(asked, call);
  // The hint to ask explain would not help here: this is explain, and it shows the candidates.
  if (e.refusal && e.refusal->hint_text() == kExplainHint) e.refusal->hint("");
  report_versions(options.input, e, console);
  report_rules(options.input, rules, call.blob, console);
  for (const std::string& warning : e.warnings) console.warn(warning);
  const Json document = explanation_json(rules, options, e);
  if (console.json()) {
    console.result_json(document);
  } else {
    console.result(explanation_text(console, e, document));
  }

  // End as convert would, with the same exit code and words.
  require_conversion(e);
  return kOk;
}

}  // namespace mxfp4
