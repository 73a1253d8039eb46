#include "formats/decision/decide.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/decision/layout_choice.hpp"
#include "lib/core/checked.hpp"
#include "lib/core/dtype.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/output.hpp"
#include "lib/load/style_rows.hpp"
#include "lib/oracle/question.hpp"
#include "lib/revisions/class_limits.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

// Null without a checkpoint or without a config.json.
const ModelConfig* config_of(const OpenedCheckpoint* checkpoint) {
  return checkpoint != nullptr && checkpoint->config ? &*checkpoint->config : nullptr;
}

ModelFacts facts_of(const ConversionRequest& request, const OpenedCheckpoint* checkpoint) {
  ModelFacts facts;
  if (checkpoint == nullptr) {
    facts.family = request.family;
    facts.caller = usual_caller(
        *request.rules, request.deployment.selector.value_or(Selector::kGptOss), facts.family);
    return facts;
  }
  const ModelLayers& model = checkpoint->model;
  const ModelConfig* config = config_of(checkpoint);
  if (config != nullptr && model.follows_checkpoint()) {
    facts.caller = find_caller(*request.rules, *config);
  }
  facts.family = model.family;
  facts.biases = model.layers.front().has(Slot::kW13Bias);
  facts.input_scales = model.layers.front().has(Slot::kW13InputScale);
  return facts;
}

// Sets a knob that the method class decides. A knob that says something else is Error::usage, since
// the engine would make other bytes. With a forced backend, or without the model's config, the
// user's knob decides.
void complete_method_knob(const MethodKnobRow& row, const OpenedCheckpoint* checkpoint,
                          Conversion& conversion) {
  const std::string knob(row.knob);
  const Decision& decision = conversion.decision;
  if (decision.forced || conversion.caller == nullptr || config_of(checkpoint) == nullptr) return;
  const auto known = decision.knobs.find(knob);
  const std::string value = known == decision.knobs.end() ? std::string(row.usual) : known->second;
  const auto given = conversion.target.knobs.find(knob);
  if (given == conversion.target.knobs.end()) {
    if (known != decision.knobs.end()) conversion.target.knobs.emplace(knob, value);
    return;
  }
  if (given->second == value) return;
  throw Error::usage(fmt::format("{} contradicts the other facts, with which the engine packs {}",
                                 given->second, value))
      .at_key(fmt::format("--knob {}", knob));
}

// Sets the knobs that follow from other facts: the CUDA compiler from the target file, for a
// backend that asks for it, what the method class decides, and the type of activations. A type
// "none" that contradicts those facts is Error::usage, since the engine would make other bytes. A
// knob that names another type stays: it means the process's variable, which wins in the
// engine, too.
void complete_knobs(Conversion& conversion, const OpenedCheckpoint* checkpoint) {
  const RuleSet& rules = *conversion.rules;
  const std::string& compiler = conversion.deployment.cuda_compiler;
  const BackendRow* backend = find_backend_row(rules, conversion.target.backend);
  if (!compiler.empty() && backend != nullptr && backend->asks_compiler) {
    conversion.target.knobs.try_emplace("cuda_compiler", compiler);
  }
  for (const MethodKnobRow& row : rules.method_knobs) {
    complete_method_knob(row, checkpoint, conversion);
  }
  const std::optional<InputDtype> known =
      input_dtype(rules, conversion.deployment, conversion.caller, conversion.target);
  if (!known || !known->value) return;
  const auto [given, added] =
      conversion.target.knobs.try_emplace(std::string(known->knob), *known->value);
  if (added || given->second != "none" || *known->value == "none") return;
  throw Error::usage(fmt::format("none contradicts the quantization config, which asks for {}",
                                 conversion.deployment.activation_override.value_or(*known->value)))
      .at_key(fmt::format("--knob {}", known->knob));
}

// Refuses a blob that the engine would never read. Allows it for a forced backend, which is not the
// engine's choice.
void check_servable(Conversion& conversion, const ConversionRequest& request) {
  Decision& decision = conversion.decision;
  if (conversion.stops.empty() || decision.forced || request.allow_unservable) return;
  std::erase(decision.notes, conversion.stops);  // the refusal says it
  throw Error::unsupported(fmt::format("the engine would not serve it: {}", conversion.stops))
      .hint("--allow-unservable writes the bytes all the same");
}

// Refuses known defects, but not for a loaded input: its maker chose its row order, while the user
// of a checkpoint cannot know of it.
void check_defects(const Conversion& conversion, const ConversionRequest& request,
                   const OpenedCheckpoint* checkpoint) {
  const bool loaded = checkpoint != nullptr && !checkpoint->model.follows_checkpoint();
  if (conversion.defects.empty() || request.allow_known_defects || loaded) return;
  throw Error::unsupported(conversion.defects.front())
      .hint("--allow-known-defects writes the reference's bytes all the same");
}

void cut(Conversion& conversion, const ConversionRequest& request,
         const OpenedCheckpoint& checkpoint) {
  conversion.model = common_dims(checkpoint.model);
  SliceRequest slice{*conversion.rules, conversion.deployment, conversion.target, request.placement,
                     request.pad};
  slice.config = config_of(&checkpoint);
  slice.padded = request.padded;
  slice.caller = serving_caller(*conversion.rules, checkpoint);
  conversion.ranks = in_file(checkpoint.path.string(),
                             [&] { return cut_ranks(checkpoint.model, conversion.model, slice); });
  conversion.fill = scale_fill_of(checkpoint.model, conversion.ranks.front());
}

void check_rank(const std::optional<int64_t>& rank, int64_t ranks) {
  if (!rank || (*rank >= 0 && *rank < ranks)) return;
  throw Error::usage(ranks == 1
                         ? fmt::format("--rank {}: there is one rank only, 0", *rank)
                         : fmt::format("--rank {}: the ranks are 0 to {}", *rank, ranks - 1));
}

// Makes the slices and lets the layout check them. Without a checkpoint only their number is known.
void complete_ranks(Conversion& conversion, const ConversionRequest& request,
                    const OpenedCheckpoint* checkpoint) {
  if (checkpoint == nullptr) {
    check_rank(request.rank, world_of(conversion.deployment.parallel).ranks);
    return;
  }
  cut(conversion, request, *checkpoint);
  check_rank(request.rank, static_cast<int64_t>(conversion.ranks.size()));
  if (request.rank) conversion.ranks = {conversion.ranks[static_cast<size_t>(*request.rank)]};
  check_preconditions(conversion, checkpoint->model);
  check_scales(conversion, *checkpoint);
}

// The engine checks EPLB's experts when it starts (config/parallel.py).
void check_redundant_experts(const ParallelConfig& parallel) {
  const int64_t redundant = parallel.num_redundant_experts;
  if (redundant == 0) return;
  if (!parallel.enable_eplb) {
    throw Error::unsupported(
        fmt::format(
            "num_redundant_experts is set to {} but EPLB is not enabled. Either enable EPLB "
            "or unset num_redundant_experts.",
            redundant))
        .reference_type("ValueError");
  }
  if (!parallel.enable_expert_parallel) {
    throw Error::unsupported("enable_expert_parallel must be True to use EPLB.")
        .reference_type("ValueError");
  }
}

// Whether the checkpoint holds its shared experts as MXFP4; empty without a checkpoint.
std::optional<bool> shared_experts_are_mxfp4(const OpenedCheckpoint* checkpoint) {
  if (checkpoint == nullptr) return std::nullopt;
  return std::ranges::any_of(checkpoint->source->tensors(), [](const SourceTensor& tensor) {
    return tensor.spec.dtype == DType::kU8 && !tensor.name.ends_with("scale") &&
           tensor.name.find("shared_expert") != std::string::npos;
  });
}

// Refuses a deployment in which a rank holds more slots than the routed experts.
void check_shared_experts(const Conversion& conversion, const OpenedCheckpoint* checkpoint) {
  const ModelConfig* config = config_of(checkpoint);
  const int64_t shared = config == nullptr ? 0 : config->num_shared_experts;
  if (shared == 0 || conversion.decision.forced) return;
  const FusedSharedRow* row = fused_shared_row(*conversion.rules, conversion.deployment,
                                               shared_experts_are_mxfp4(checkpoint));
  if (row == nullptr) return;
  if (!row->stops.empty()) {
    throw Error::unsupported(std::string(row->stops)).reference_type("ValueError");
  }
  throw Error::unsupported(
      fmt::format(
          "VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS: the engine puts {} shared expert{} behind "
          "the {} routed ones of every rank, and a blob holds the routed ones only",
          shared, shared == 1 ? "" : "s", config->num_experts.value_or(0)))
      .hint("without the variable the shared experts stay apart, and the blob fits");
}

// Completes the conversion after the oracle's answer: layout, slices, preconditions, defects.
void complete(Conversion& conversion, const ConversionRequest& request,
              const OpenedCheckpoint* checkpoint) {
  if (!conversion.decision.backend) {
    throw Error::unsupported(conversion.decision.error_message)
        .reference_type(conversion.decision.error_type);
  }
  check_redundant_experts(conversion.deployment.parallel);
  check_shared_experts(conversion, checkpoint);
  if (!request.stop_at_loaded) conversion.layout = require_layout(conversion);
  complete_ranks(conversion, request, checkpoint);
  if (request.stop_at_loaded) return;
  const W13Order usual =
      conversion.family == Family::kGptOss ? W13Order::kInterleaved : W13Order::kHalves;
  const LayerDims padded = conversion.ranks.empty() ? LayerDims{} : conversion.ranks.front().padded;
  conversion.defects = defect_notes(
      *conversion.rules,
      {conversion.target, padded, checkpoint == nullptr ? usual : checkpoint->model.order});
  check_servable(conversion, request);
  check_defects(conversion, request, checkpoint);
}

}  // namespace

Conversion decide_conversion(const ConversionRequest& request, const OpenedCheckpoint* checkpoint) {
  const RuleSet& rules = *request.rules;
  const ModelFacts facts = facts_of(request, checkpoint);
  Conversion conversion;
  conversion.rules = &rules;
  conversion.caller = facts.caller;
  conversion.deployment =
      resolve_deployment(rules, request.deployment, facts.caller, config_of(checkpoint));
  if (const auto said = request.knobs.find("params_dtype"); said != request.knobs.end()) {
    conversion.deployment.half_precision = said->second == "float16";
  }
  if (const ModelConfig* config = config_of(checkpoint)) {
    conversion.deployment.model_class = model_class_of(*config);
    conversion.deployment.limits = class_limits(rules, *config, conversion.deployment.platform);
  }
  conversion.family = family_of(facts.caller, facts.family, conversion.deployment.selector);
  conversion.decision = decide(rules, conversion.deployment, facts, request.backend);
  for (LoadNote& note : load_notes(rules, conversion.deployment, facts, conversion.decision)) {
    if (note.stops && conversion.stops.empty()) conversion.stops = std::move(note.text);
  }
  if (conversion.decision.backend) {
    conversion.target = make_target(conversion.deployment, conversion.decision, conversion.family);
    conversion.target.knobs = request.knobs;
    if (request.world_size) conversion.target.world_size = *request.world_size;
    complete_knobs(conversion, checkpoint);
    conversion.row = find_layout_row(rules, conversion.target);
  }
  try {
    complete(conversion, request, checkpoint);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUnsupported) throw;
    conversion.refusal = error;
  }
  return conversion;
}

void require_conversion(const Conversion& conversion) {
  if (conversion.refusal) throw Error(*conversion.refusal);
}

PlanOptions plan_options(const Conversion& conversion) {
  return {.layout = conversion.layout, .parameters = layout_parameters(conversion.target)};
}

namespace {

// Gives every rank the padding of scales that its path has.
std::vector<RankSlice> with_fills(std::vector<RankSlice> ranks, const SliceRequest& request) {
  const RoundingRow* row = find_rounding_row(request.rules, request.target, request.method());
  if (row == nullptr) return ranks;
  for (RankSlice& rank : ranks) {
    rank.hidden_fill = row->hidden_fill;
    rank.intermediate_fill = row->intermediate_fill;
  }
  return ranks;
}

}  // namespace

const CallerRow* serving_caller(const RuleSet& rules, const OpenedCheckpoint& checkpoint) {
  const ModelLayers& model = checkpoint.model;
  if (!model.follows_checkpoint()) return nullptr;
  if (checkpoint.config) return find_caller(rules, *checkpoint.config);
  const StyleRow* row = find_style_row(model.style, model.loader);
  return row == nullptr ? nullptr : find_method(rules, row->method);
}

std::vector<RankSlice> cut_ranks(const ModelLayers& model, const LayerDims& dims,
                                 const SliceRequest& request) {
  const RuleSet& rules = request.rules;
  SliceOptions options;
  options.parallel = request.deployment.parallel;
  options.placement = request.placement;
  options.rocm = request.target.platform == Platform::kRocm;
  options.round = request.pad;
  if (request.config != nullptr) options.n_group = request.config->n_group;
  const ModelBackendRow* own = find_model_backend(rules, request.target.backend);
  const ParallelConfig& parallel = request.deployment.parallel;
  const Question question = make_question(rules, request.deployment);
  const std::string& all2all = question.parallel.all2all_backend;
  const bool of_class =
      request.config == nullptr ||
      class_limits(rules, *request.config, request.target.platform).redundant_experts;
  const bool hands_on = own != nullptr ? own->redundant_experts : of_class;
  options.redundant_experts = hands_on ? parallel.num_redundant_experts : 0;
  const bool eplb = parallel.enable_eplb && hands_on;
  options.even_experts = own != nullptr || eplb;
  options.round_robin =
      !eplb && (!question.uses_all2all || all2all == "deepep_low_latency" || all2all == "nixl_ep");
  options.divides_by_all_ranks = rules.loader.divides_by_all_ranks;
  const bool rounds = rounds_sizes(request.caller, request.target.backend);
  if (rules.loader.strides_by_checkpoint) options.generic_stride = GenericStride::kCheckpoint;
  if (request.padded) {
    const auto at_least = [](std::string_view what, int64_t padded, int64_t size) {
      if (padded >= size) return padded;
      throw Error::usage(fmt::format("padded {} size {}: a rank has {}", what, padded, size));
    };
    options.round_hidden = [&](int64_t hidden) {
      return at_least("hidden", request.padded->hidden_size, hidden);
    };
    const auto padded = [&](LayerDims sizes) {
      (void)at_least("intermediate", request.padded->intermediate_size, sizes.intermediate_size);
      return LayerDims{sizes.num_experts, request.padded->hidden_size,
                       request.padded->intermediate_size};
    };
    if (rounds) options.round_sizes = padded;
    return with_fills(slice_ranks(model, dims, options), request);
  }
  const LeastSliceRow* least =
      request.config == nullptr ? nullptr
                                : find_least_slice(rules, request.target.platform, *request.config);
  if (least != nullptr) {
    options.least_slice = request.config->least_slice.value_or(least->rows);
    options.least_slice_with_experts = least->with_expert_parallel;
  }
  if (question.uses_all2all) {
    options.round_hidden = [&](int64_t hidden) {
      return round_up_all2all_hidden(rules, question.parallel.all2all_backend, hidden);
    };
  }
  const auto rounded = [&](LayerDims sizes) {
    return round_up_sizes(rules, request.target, sizes, request.method());
  };
  if (rounds) options.round_sizes = rounded;
  return with_fills(slice_ranks(model, dims, options), request);
}

}  // namespace mxfp4
