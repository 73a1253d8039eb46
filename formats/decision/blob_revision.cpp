#include "formats/decision/blob_revision.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/config/config_json.hpp"
#include "formats/decision/decide.hpp"
#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/output.hpp"
#include "lib/load/style_rows.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

void check_layout(const RuleSet& rules, const Manifest& rank, std::vector<FitReason>& reasons) {
  if (rank.layout == kLoadedLayoutId) return;
  const LayoutRow* row = find_layout_row(rules, rank.target);
  const std::string_view backend = backend_name(rank.target.backend);
  if (row == nullptr) {
    reasons.push_back({fmt::format("{} has no layout for this target there", backend)});
  } else if (row->layout == nullptr) {
    reasons.push_back({fmt::format("{} is refused there: {}", backend, row->refusal)});
  } else if (id_of(*row->layout) != rank.layout) {
    reasons.push_back(
        {fmt::format("layout {} there, this blob has {}", id_of(*row->layout), rank.layout)});
  }
}

Deployment deployment_of(const Manifest& rank) {
  Deployment deployment;
  deployment.platform = rank.target.platform;
  deployment.arch = rank.target.arch;
  deployment.parallel = rank.parallel;
  return deployment;
}

// What cut_ranks() has to know of the model that the blob was cut from. The number of its experts
// is not known, but every number that can be divided among the ranks gives the same sizes.
ModelLayers model_of(const Manifest& rank, const LayerDims& dims) {
  ModelLayers model;
  model.loader = rank.loader;
  model.family = rank.target.family;
  model.order = rank.order;
  model.layers.emplace_back().dims = dims;
  return model;
}

void compare_sizes(const ManifestLayer& layer, const RankSlice& there, const RankSlice& here,
                   std::vector<FitReason>& reasons) {
  const LayerDims& have = layer.loaded.dims;
  const LayerDims& want = there.padded;
  if (want.hidden_size != have.hidden_size || want.intermediate_size != have.intermediate_size) {
    reasons.push_back({fmt::format("layer {}: padded to H {}, I {} there, this blob has H {}, I {}",
                                   layer.index, want.hidden_size, want.intermediate_size,
                                   have.hidden_size, have.intermediate_size)});
  } else if (there.begin != here.begin || there.end != here.end) {
    reasons.push_back(
        {fmt::format("this rank holds [{}, {}) of the intermediate size there, this blob has "
                     "[{}, {})",
                     there.begin, there.end, here.begin, here.end)});
  }
}

// The byte that the rules pad scales with; empty where nothing is padded, or where the path is one
// of the blob's own engine and says nothing of its own.
std::optional<ScaleFill> fill_there(const RuleSet& rules, const Manifest& rank,
                                    const ManifestLayer& layer, const RankSlice& there,
                                    const CallerRow* caller) {
  const bool padded = there.padded.hidden_size != layer.hidden_size ||
                      there.padded.intermediate_size != there.end - there.begin;
  if (!padded || (rank.engine == rules.engine && !there.intermediate_fill)) return std::nullopt;
  ModelLayers model;
  for (const StyleRow& row : style_rows()) {
    if (style_name(row.style) == rank.style) model.scale_fill = row.scale_fill;
  }
  if (caller != nullptr) model.scale_fill = caller->scale_fill.value_or(model.scale_fill);
  return scale_fill_of(model, there);
}

void check_fill(const RuleSet& rules, const Manifest& rank, const ManifestLayer& layer,
                const RankSlice& there, const CallerRow* caller, std::vector<FitReason>& reasons) {
  const std::optional<ScaleFill> want = fill_there(rules, rank, layer, there, caller);
  if (!want) return;
  const std::byte hidden = rank.hidden_scale_fill.value_or(rank.scale_fill);
  if (want->intermediate == rank.scale_fill && want->hidden == hidden) return;
  reasons.push_back(
      {fmt::format("scales are padded with {} (H) and {} (I) there, in this blob with {} and {}",
                   std::to_integer<int>(want->hidden), std::to_integer<int>(want->intermediate),
                   std::to_integer<int>(hidden), std::to_integer<int>(rank.scale_fill))});
}

void check_sizes(const RuleSet& rules, const Manifest& rank, const std::vector<Manifest>& ranks,
                 const ModelConfig& config, const CallerRow* caller,
                 std::vector<FitReason>& reasons) {
  int64_t intermediate = 0;
  for (const Manifest& each : ranks) intermediate = std::max(intermediate, each.rank.end);
  const auto tp_ranks = static_cast<int64_t>(ranks.size());
  if (rank.rank.tp_size > 1 && tp_ranks < rank.rank.num_ranks) {
    reasons.push_back(
        {fmt::format("the sizes there follow from all {} ranks' blobs", rank.rank.num_ranks),
         /*certain=*/false});
    return;
  }
  const Deployment deployment = deployment_of(rank);
  for (const ManifestLayer& layer : rank.layers) {
    const auto experts = std::max<int64_t>(1, layer.loaded.dims.num_experts);
    const LayerDims dims{checked_mul(experts, rank.rank.ep_size), layer.hidden_size, intermediate};
    const std::vector<RankSlice> slices = cut_ranks(model_of(rank, dims), dims,
                                                    {.rules = rules,
                                                     .deployment = deployment,
                                                     .target = rank.target,
                                                     .config = &config,
                                                     .caller = caller});
    const auto index = static_cast<size_t>(rank.rank.rank);
    if (index >= slices.size()) throw Error::input("its rank does not fit its own parallel sizes");
    compare_sizes(layer, slices[index], rank.rank, reasons);
    if (reasons.empty()) check_fill(rules, rank, layer, slices[index], caller, reasons);
    if (!reasons.empty()) return;  // the other layers would repeat them
  }
}

}  // namespace

std::optional<ModelConfig> typical_config(const Manifest& rank) {
  for (const StyleRow& row : style_rows()) {
    if (style_name(row.style) != rank.style) continue;
    ModelConfig config;
    if (rank.checkpoint.config) {
      config = parse_model_config(*rank.checkpoint.config, kConfigName);
      if (!config.quantization && !config.original_gpt_oss) config.quantization.emplace();
      if (config.quantization && !rank.source.activation.empty()) {
        config.quantization->activation = rank.source.activation;
      }
      if (config.quantization && config.quantization->name.empty()) {
        config.quantization->name = row.methods.front();  // --style said it
      }
      return config;
    }
    config.quantization.emplace().name = row.methods.front();
    config.quantization->activation = rank.source.activation;
    config.quantization->format = "mxfp4-pack-quantized";
    config.quantization->expert_dtype = "fp4";
    config.model_type = rank.source.model_type;
    if (row.model == ModelRule::kGptOss) config.model_type = "gpt_oss";
    // Older blobs do not name their model.
    if (row.style == Style::kDeepseekV4 && config.model_type.empty()) {
      config.model_type = "deepseek_v4";
    }
    return config;
  }
  return std::nullopt;  // a loaded input
}

std::vector<FitReason> reasons_against(const RuleSet& rules, const Manifest& rank,
                                       const std::vector<Manifest>& ranks,
                                       const std::optional<ModelConfig>& config) {
  std::vector<FitReason> reasons;
  check_layout(rules, rank, reasons);
  if (!config) return reasons;  // a loaded input, whose maker chose family and sizes
  try {
    const CallerRow* caller = find_caller(rules, *config);
    if (caller != nullptr && caller->family != rank.target.family) {
      reasons.push_back({fmt::format(
          "{} serves such a checkpoint there, with the {} converter; "
          "this blob is of the {} one",
          caller->method, family_name(caller->family), family_name(rank.target.family))});
    }
    check_sizes(rules, rank, ranks, *config, caller, reasons);
  } catch (const Error& error) {
    reasons.push_back({error.what()});
  }
  return reasons;
}

const RuleSet& rules_of_blob(const Manifest& manifest) {
  const Release* release = find_release(manifest.revision);
  return release == nullptr ? default_revision() : rules_of(*release);
}

}  // namespace mxfp4
