#include "apps/blob_revision.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/load/style_rows.hpp"
#include "lib/oracle/checkpoint.hpp"

namespace mxfp4 {
namespace {

// A config as checkpoints of this style have it, as far as it tells the method class.
std::optional<ModelConfig> typical_config(std::string_view style) {
  for (const StyleRow& row : style_rows()) {
    if (style_name(row.style) != style) continue;
    ModelConfig config;
    config.quant.emplace().name = row.methods.front();
    if (row.model == ModelRule::kGptOss) config.model_type = "gpt_oss";
    if (row.style == Style::kDeepseekV4) config.model_type = "deepseek_v4";
    return config;
  }
  return std::nullopt;  // a loaded input
}

void check_layout(const RuleSet& rules, const Manifest& rank, std::vector<std::string>& reasons) {
  if (rank.layout == kLoadedLayoutId) return;
  const LayoutRow* row = find_layout_row(rules, rank.target);
  const std::string_view backend = backend_name(rank.target.backend);
  if (row == nullptr) {
    reasons.push_back(fmt::format("{} has no layout for this target there", backend));
  } else if (row->layout == nullptr) {
    reasons.push_back(fmt::format("{} is refused there: {}", backend, row->refusal));
  } else if (row->layout->id != rank.layout) {
    reasons.push_back(
        fmt::format("layout {} there, this blob has {}", row->layout->id, rank.layout));
  }
}

Deployment deployment_of(const Manifest& rank) {
  Deployment deployment;
  deployment.platform = rank.target.platform;
  deployment.arch = rank.target.arch;
  deployment.parallel = rank.parallel;
  return deployment;
}

// Slices by the gpt-oss loaders are the same in every revision.
void check_slice(const RuleSet& rules, const Manifest& rank, int64_t intermediate, int64_t padded,
                 std::vector<std::string>& reasons) {
  if (rank.loader != Loader::kGeneric || rank.rank.tp_size == 1) return;
  const int64_t stride =
      rules.loader.strides_by_checkpoint ? intermediate / rank.rank.tp_size : padded;
  int64_t begin = std::min(checked_mul(rank.rank.tp_rank, stride), intermediate);
  const int64_t end = std::min(checked_add(begin, stride), intermediate);
  if (begin == end) return;
  if (begin == rank.rank.begin && end == rank.rank.end) return;
  reasons.push_back(
      fmt::format("this rank holds [{}, {}) of the intermediate size there, this "
                  "blob has [{}, {})",
                  begin, end, rank.rank.begin, rank.rank.end));
}

void check_sizes(const RuleSet& rules, const Manifest& rank, const std::vector<Manifest>& ranks,
                 const CallerRow* caller, std::vector<std::string>& reasons) {
  int64_t intermediate = 0;
  for (const Manifest& each : ranks) intermediate = std::max(intermediate, each.rank.end);
  const auto tp_ranks = static_cast<int64_t>(ranks.size());
  if (rank.rank.tp_size > 1 && tp_ranks < rank.rank.num_ranks) {
    reasons.push_back(fmt::format("not known: the sizes there follow from all {} ranks' blobs",
                                  rank.rank.num_ranks));
    return;
  }
  for (const ManifestLayer& layer : rank.layers) {
    const LayerDims model{std::max<int64_t>(1, layer.loaded.dims.num_experts), layer.hidden_size,
                          intermediate};
    const LayerDims want =
        rank_sizes(rules, deployment_of(rank), caller, rank.target, model).padded;
    const LayerDims& have = layer.loaded.dims;
    if (want.hidden_size != have.hidden_size || want.intermediate_size != have.intermediate_size) {
      reasons.push_back(fmt::format(
          "layer {}: padded to H {}, I {} there, this blob has H {}, I {}", layer.index,
          want.hidden_size, want.intermediate_size, have.hidden_size, have.intermediate_size));
      return;  // the others say the same
    }
    check_slice(rules, rank, intermediate, want.intermediate_size, reasons);
    if (!reasons.empty()) return;
  }
}

}  // namespace

std::vector<std::string> reasons_against(const RuleSet& rules, const Manifest& rank,
                                         const std::vector<Manifest>& ranks) {
  std::vector<std::string> reasons;
  check_layout(rules, rank, reasons);
  const std::optional<ModelConfig> config = typical_config(rank.style);
  if (!config) return reasons;  // its maker chose family and sizes
  try {
    const CallerRow* caller = find_caller(rules, *config);
    if (caller != nullptr && caller->family != rank.target.family) {
      reasons.push_back(fmt::format(
          "{} serves such a checkpoint there, with the {} converter; "
          "this blob is of the {} one",
          caller->method, family_name(caller->family), family_name(rank.target.family)));
    }
    check_sizes(rules, rank, ranks, caller, reasons);
  } catch (const Error& error) {
    reasons.emplace_back(error.what());
  }
  return reasons;
}

}  // namespace mxfp4
