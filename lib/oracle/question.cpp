// Facts that follow from a deployment, and the texts that name them.
#include "lib/oracle/question.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/oracle/python_text.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {
namespace {

Error bad_arch(std::string_view arch, std::string_view expected) {
  return Error::input(fmt::format("expected {}, found '{}'", expected, arch)).at_key("arch");
}

Capability cuda_device_capability(std::string_view arch) {
  const std::optional<int> number = cuda_capability(arch);
  if (!number || *number > 999) throw bad_arch(arch, "sm<major><minor>, such as sm90 or sm120");
  return {*number / 10, *number % 10};
}

Capability rocm_device_capability(std::string_view arch) {
  constexpr std::string_view kExpected = "a gfx9 to gfx12 name, such as gfx950 or gfx1201";
  if (!arch.starts_with("gfx")) throw bad_arch(arch, kExpected);
  const std::string_view digits = arch.substr(3);
  const auto count =
      static_cast<size_t>(std::ranges::find_if_not(digits, is_digit) - digits.begin());
  if (count < 2 || count > 4) throw bad_arch(arch, kExpected);
  const auto digit = [&](size_t i) { return digits[i] - '0'; };
  const Capability capability =
      count == 4 ? Capability{digit(0) * 10 + digit(1), digit(2)} : Capability{digit(0), digit(1)};
  if (capability.major < 9 || capability.major > 12) throw bad_arch(arch, kExpected);
  return capability;
}

std::string_view resolve_alias(std::span<const NameAlias> aliases, std::string_view name) {
  const auto alias = std::ranges::find(aliases, name, &NameAlias::name);
  return alias == aliases.end() ? name : alias->means;
}

// The known name itself, so that the view outlives the deployment's string.
std::string_view known_name(std::string_view what, std::span<const std::string_view> names,
                            std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return *found;
  throw Error::input(fmt::format("unknown name '{}'; known: {}", name, fmt::join(names, ", ")))
      .at_key(what);
}

void require_key(const RuleSet& rules, std::string_view what,
                 const std::optional<std::string>& key) {
  if (!key || find_key_row(rules, *key) != nullptr) return;
  std::vector<std::string_view> names;
  for (const ActivationKeyRow& row : rules.keys) names.push_back(row.name);
  (void)known_name(what, names, *key);
}

int routing_number(const RuleSet& rules, std::string_view method) {
  const auto row = std::ranges::find(rules.routing_methods, method, &NumberedName::name);
  if (row != rules.routing_methods.end()) return row->number;
  std::vector<std::string_view> names;
  for (const NumberedName& known : rules.routing_methods) names.push_back(known.name);
  (void)known_name("routing_method", names, method);
  return -1;
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::toupper(c); });
  return out;
}

std::string_view python_bool(bool value) { return value ? "True" : "False"; }

std::string parallel_text(const MoeParallel& p) {
  return fmt::format(
      "FusedMoEParallelConfig(tp_size={}, pcp_size={}, dp_size={}, ep_size={}, tp_rank=0, "
      "pcp_rank=0, dp_rank=0, ep_rank=0, sp_size={}, use_ep={}, all2all_backend={}, "
      "enable_eplb={})",
      p.tp_size, p.pcp_size, p.dp_size, p.ep_size, p.sp_size, python_bool(p.use_ep),
      python_repr(p.all2all_backend), python_bool(p.enable_eplb));
}

std::string replace_fp8(std::string_view text, const Question& q) {
  constexpr std::string_view kName = "{fp8}";
  std::string out(text);
  const size_t at = out.find(kName);
  if (at == std::string::npos) return out;
  for (const Fp8TextRow& row : q.rules.fp8_texts) {
    if (row.when.holds(q)) return out.replace(at, kName.size(), row.text);
  }
  throw Error::internal("no fp8 text for this platform");
}

std::string alias_list(const Question& q) {
  std::vector<std::string_view> names;
  for (const AliasRow& row : q.rules.aliases) names.push_back(row.name);
  return python_list(names);
}

// The names that fill_text knows.
struct TextSource {
  std::string_view name;
  std::string (*text)(const Question&);
};

const TextSource kTextSources[] = {
    {"device",
     [](const Question& q) {
       const Platform platform = q.deployment.platform;
       return std::string(platform == Platform::kOther ? "None" : platform_name(platform));
     }},
    {"activation", [](const Question& q) { return upper(q.activation); }},
    {"weight_key", [](const Question& q) { return std::string(q.rules.weight_key_text); }},
    {"key", [](const Question& q) { return key_text(q, q.key); }},
    {"model_key", [](const Question& q) { return key_text(q, q.deployment.model_activation); }},
    {"override", [](const Question& q) { return key_text(q, q.deployment.activation_override); }},
    {"parallel", [](const Question& q) { return parallel_text(q.parallel); }},
    {"routing",
     [](const Question& q) {
       return std::to_string(routing_number(q.rules, q.deployment.routing_method));
     }},
    {"routing_name", [](const Question& q) { return q.deployment.routing_method; }},
    {"format",
     [](const Question& q) { return std::string(q.batched ? "batched_experts" : "standard"); }},
    {"moe_backend", [](const Question& q) { return q.deployment.moe_backend; }},
    {"arch", [](const Question& q) { return q.deployment.arch; }},
    {"all2all", [](const Question& q) { return q.parallel.all2all_backend; }},
    {"aliases", alias_list},
    {"gemm_type", preferred_gemm_type},
    {"num_experts",
     [](const Question& q) { return std::to_string(q.deployment.num_experts.value_or(0)); }},
    {"physical_experts",
     [](const Question& q) {
       const Deployment& d = q.deployment;
       return std::to_string(d.num_experts.value_or(0) + d.parallel.num_redundant_experts);
     }},
    {"ep_size", [](const Question& q) { return std::to_string(q.parallel.ep_size); }},
    {"model_type", [](const Question& q) { return python_repr(q.deployment.model_type); }},
};

std::string text_of(std::string_view name, const Question& question,
                    std::initializer_list<std::pair<std::string_view, std::string_view>> extra) {
  for (const auto& [extra_name, text] : extra) {
    if (extra_name == name) return std::string(text);
  }
  for (const TextSource& source : kTextSources) {
    if (source.name == name) return source.text(question);
  }
  throw Error::internal(fmt::format("a rule's text names an unknown field '{}'", name));
}

// CUDA: "sm<major><minor>", the last digit being the minor one. ROCm: two or three digits after
// "gfx" are (first, second), four are (first two, third); suffixes such as ":xnack-" are ignored.
// Empty on other platforms. Throws Error::input for a name that is neither.
std::optional<Capability> device_capability(Platform platform, std::string_view arch) {
  if (platform == Platform::kCuda) return cuda_device_capability(arch);
  if (platform == Platform::kRocm) return rocm_device_capability(arch);
  return std::nullopt;
}

}  // namespace

MoeParallel flatten_parallel(const RuleSet& rules, const ParallelConfig& config) {
  const World world = world_of(config);
  return {
      .tp_size = world.tp,
      .pcp_size = config.pcp_size,
      .dp_size = config.dp_size,
      .ep_size = world.ep,
      .sp_size = config.sequence_parallel ? config.tp_size : 1,
      .use_ep = world.ep > 1,
      .all2all_backend =
          std::string(known_name("all2all_backend", rules.all2all_backends,
                                 resolve_alias(rules.all2all_aliases, config.all2all_backend))),
      .enable_eplb = config.enable_eplb,
  };
}

Question make_question(const RuleSet& rules, const Deployment& deployment) {
  (void)routing_number(rules, deployment.routing_method);
  if (deployment.activation_override && !rules.takes_override) {
    throw Error::input(fmt::format("{} has no quantization_config.moe.activation", rules.name))
        .at_key("activation_override");
  }
  require_key(rules, "activation_override", deployment.activation_override);
  require_key(rules, "model_activation", deployment.model_activation);
  Question question{
      .rules = rules,
      .deployment = deployment,
      .parallel = flatten_parallel(rules, deployment.parallel),
      // Only a forced backend may leave the arch open: then no device test is asked.
      .capability = deployment.arch.empty()
                        ? std::nullopt
                        : device_capability(deployment.platform, deployment.arch),
      .activation = known_name("activation", rules.activations,
                               resolve_alias(rules.activation_aliases, deployment.activation)),
  };
  question.gated = rules.gated.holds(question);
  question.uses_all2all = rules.uses_all2all.holds(question);
  question.batched = rules.batched.holds(question);
  return question;
}

std::string preferred_gemm_type(const Question& question) {
  const GemmTypeRule& rule = question.rules.gemm_type;
  const auto found = question.deployment.env.find(std::string(rule.variable));
  const bool by_expert_parallel = rule.grouped_with_expert_parallel && question.parallel.use_ep;
  std::string unset = by_expert_parallel ? "grouped_contiguous" : "indexed";
  if (found == question.deployment.env.end()) return unset;
  std::string value = found->second;
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
  if (value == "grouped" || value == "grouped_contiguous") return "grouped_contiguous";
  if (!rule.any_value) return "indexed";
  return value == "auto" ? unset : value;
}

std::string key_text(const Question& question, std::optional<std::string_view> key) {
  if (!key) return "None";
  const ActivationKeyRow* row = find_key_row(question.rules, *key);
  if (row == nullptr) throw Error::internal(fmt::format("unknown key '{}' in a rule", *key));
  return replace_fp8(row->text, question);
}

std::string fill_text(std::string_view text, const Question& question,
                      std::initializer_list<std::pair<std::string_view, std::string_view>> extra) {
  std::string out;
  out.reserve(text.size() + 64);
  while (true) {
    const size_t open = text.find('{');
    out += text.substr(0, open);
    if (open == std::string_view::npos) return out;
    const size_t close = text.find('}', open);
    out += text_of(text.substr(open + 1, close - open - 1), question, extra);
    text.remove_prefix(close + 1);
  }
}

}  // namespace mxfp4
