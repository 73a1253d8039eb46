// Defaults and contradictions of a deployment.
#include "lib/oracle/resolve.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

Platform resolve_platform(const DeploymentFacts& facts) {
  const std::string arch = facts.arch.value_or("");
  const std::optional<Platform> implied = platform_of_arch(arch);
  // Any host may drive an XPU or an unnamed device, so only device names contradict a platform.
  const bool names_device = implied && has_capability(*implied);
  if (facts.platform) {
    const bool wants_device = has_capability(*facts.platform);
    if ((names_device || wants_device) && !arch.empty() && implied != facts.platform) {
      throw Error::usage(
          fmt::format("{} contradicts arch {}", platform_name(*facts.platform), arch))
          .at_key("platform");
    }
    if (wants_device && arch.empty() && facts.needs_arch) {
      throw Error::usage(fmt::format("{} needs an arch", platform_name(*facts.platform)))
          .at_key("platform")
          .hint(fmt::format("such as --arch {}",
                            *facts.platform == Platform::kCuda ? "sm90" : "gfx950"));
    }
    return *facts.platform;
  }
  if (implied) return *implied;
  if (arch.empty()) {
    throw Error::usage("the serving machine is not known")
        .hint("say --arch sm90 (gfx950, x86_64, ...), --platform xpu, or --target FILE");
  }
  throw Error::usage(fmt::format("--arch {} does not say the platform", arch))
      .hint("add --platform cuda|rocm|xpu|cpu|other");
}

void require_packages(const RuleSet& rules, const std::set<std::string>& names) {
  for (const std::string& name : names) {
    if (is_package(rules, name)) continue;
    throw Error::usage(fmt::format("unknown kernel package '{}'; known: {}", name,
                                   fmt::join(rules.packages, ", ")));
  }
}

std::set<std::string> resolve_libs(const RuleSet& rules, const DeploymentFacts& facts,
                                   Platform platform) {
  std::set<std::string> libs;
  if (facts.libs) {
    libs = *facts.libs;
  } else {
    const auto stock = std::ranges::find(rules.stock_packages, platform, &StockRow::platform);
    if (stock != rules.stock_packages.end()) {
      libs.insert(stock->packages.begin(), stock->packages.end());
    }
  }
  require_packages(rules, libs);
  require_packages(rules, facts.absent_libs);
  for (const std::string& name : facts.absent_libs) libs.erase(name);
  return libs;
}

bool is_gpt_oss(const ModelConfig* config) {
  return config == nullptr || config->model_type == "gpt_oss" || config->original_gpt_oss;
}

RoutingFacts routing_facts(const ModelConfig& config) {
  RoutingFacts facts;
  facts.scoring = config.scoring_func;
  if (facts.scoring.empty()) {
    facts.scoring = config.model_type.starts_with("deepseek_v4") ? "sqrtsoftplus" : "softmax";
  }
  facts.top_k = config.num_experts_per_tok.value_or(1);
  facts.renormalize = config.norm_topk_prob.value_or(true);
  facts.expert_groups = config.n_group.value_or(0);
  facts.scaling_factor = config.routed_scaling_factor;
  facts.score_bias = config.topk_method == "noaux_tc" || config.num_hash_layers.value_or(0) > 0;
  return facts;
}

std::string default_activation(Selector selector, const ModelConfig* config) {
  if (config == nullptr) return selector == Selector::kGptOss ? "swigluoai" : "silu";
  if (is_gpt_oss(config)) return "swigluoai";
  return config->hidden_act.empty() ? "silu" : config->hidden_act;
}

std::string default_routing(const RuleSet& rules, Selector selector, const ModelConfig* config) {
  if (config == nullptr) {
    const bool v4 = selector == Selector::kDeepseekV4;
    return std::string(derive_routing(rules, {.scoring = v4 ? "sqrtsoftplus" : "softmax"}));
  }
  if (is_gpt_oss(config)) return std::string(derive_routing(rules, {.scoring = "softmax"}));
  return std::string(derive_routing(rules, routing_facts(*config)));
}

template <class Value>
void prefer(std::optional<Value>& first, std::optional<Value>& second) {
  if (!first) first = std::move(second);
}

}  // namespace

std::optional<Platform> platform_of_arch(std::string_view arch) {
  if (arch.starts_with("sm")) return Platform::kCuda;
  if (arch.starts_with("gfx")) return Platform::kRocm;
  for (const char* cpu : {"x86", "amd64", "aarch64", "arm64", "ppc64", "s390x", "riscv64"}) {
    if (arch.starts_with(cpu)) return Platform::kCpu;
  }
  return std::nullopt;
}

bool has_capability(Platform platform) {
  return platform == Platform::kCuda || platform == Platform::kRocm;
}

DeploymentFacts merge_facts(DeploymentFacts first, DeploymentFacts second) {
  prefer(first.engine_version, second.engine_version);
  prefer(first.cuda_compiler, second.cuda_compiler);
  // Platform and arch of two different machines are not mixed.
  if (first.arch && second.platform != platform_of_arch(*first.arch)) second.platform.reset();
  if (first.platform && second.arch && platform_of_arch(*second.arch) != first.platform) {
    second.arch.reset();
  }
  prefer(first.platform, second.platform);
  prefer(first.arch, second.arch);
  prefer(first.libs, second.libs);
  first.lib_versions.merge(second.lib_versions);
  first.absent_libs.merge(second.absent_libs);
  first.env.merge(second.env);
  prefer(first.selector, second.selector);
  prefer(first.activation_override, second.activation_override);
  prefer(first.weight_override, second.weight_override);
  for_each_fact(
      [&](const FactRow&, auto members) { prefer(first.*members.given, second.*members.given); });
  return first;
}

Deployment resolve_deployment(const RuleSet& rules, const DeploymentFacts& facts,
                              const CallerRow* caller, const ModelConfig* config) {
  Deployment out;
  out.platform = resolve_platform(facts);
  out.arch = facts.arch.value_or("");
  out.libs = resolve_libs(rules, facts, out.platform);
  out.cuda_compiler = facts.cuda_compiler.value_or("");
  out.env = facts.env;
  out.selector = facts.selector.value_or(caller != nullptr ? caller->selector : Selector::kGptOss);
  out.activation_override = facts.activation_override;
  out.weight_override = facts.weight_override;
  if (caller != nullptr && !caller->model_activation.empty()) {
    out.model_activation = std::string(caller->model_activation);
  }
  out.activation = default_activation(out.selector, config);
  out.activation_assumed = !facts.activation && config == nullptr;
  const auto strategy = out.env.find(std::string(kRoutingVariable));
  const bool simulated =
      strategy != out.env.end() && !strategy->second.empty() && !rules.simulates_beside_routing;
  out.routing_method = simulated ? "Simulated" : default_routing(rules, out.selector, config);
  if (config != nullptr) {
    out.num_experts = config->num_experts;
    out.hidden_size = config->hidden_size;
    out.intermediate_size = config->intermediate_size;
    out.attention_heads = config->num_attention_heads;
    out.kv_heads = config->num_key_value_heads;
    out.model_type = config->model_type;
    out.situ_linear_beta = config->situ_linear_beta;
    out.scoring_func = routing_facts(*config).scoring;
    out.norm_topk_prob = config->norm_topk_prob.value_or(true);
    out.latent_experts = config->latent_experts;
    out.half_precision = config->half_precision;
    out.replaced_experts = config->replaced_experts;
    out.quantization = config->quantization ? config->quantization->name : "";
    out.grouped_topk = config->use_grouped_topk.value_or(true);  // as the engine's class of configs
    out.expert_groups = config->num_expert_group.value_or(1);
    out.taken_groups = config->topk_group.value_or(1);
  }
  for_each_fact([&](const FactRow&, auto members) {
    if (facts.*members.given) fact_in(out, members) = *(facts.*members.given);
  });
  out.moe_backend = normalize_moe_backend(out.moe_backend);
  out.is_act_and_mul = !out.activation.ends_with("_no_mul");
  return out;
}

std::string normalize_moe_backend(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::tolower(c));
  });
  return out;
}

std::optional<std::string> moe_backend_option(const RuleSet& rules, std::string_view text) {
  std::string name = normalize_moe_backend(text);
  if (std::ranges::find(rules.option_names, name) == rules.option_names.end()) return std::nullopt;
  return name;
}

std::string_view derive_routing(const RuleSet& rules, const RoutingFacts& facts) {
  for (const RoutingRow& row : rules.routing) {
    if (row.holds(facts)) return row.method;
  }
  throw Error::internal("no routing rule matches");
}

}  // namespace mxfp4
