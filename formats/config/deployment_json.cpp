#include "formats/config/deployment_json.hpp"

#include <fmt/format.h>

#include "formats/json/json_fields.hpp"
#include "formats/json/python_json.hpp"
#include "formats/json/strict_json.hpp"
#include "lib/core/deployment_facts.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/oracle/resolve.hpp"

namespace mxfp4 {
namespace {

using nlohmann::json;

Platform parse_platform(const std::string& name) {
  const std::optional<Platform> platform = platform_from_name(name);
  if (platform) return *platform;
  throw Error::input(
      fmt::format("platform: expected cuda, rocm, xpu, cpu or other, found '{}'", name));
}

Selector parse_selector(const std::string& name) {
  const std::optional<Selector> selector = selector_from_name(name);
  if (selector) return *selector;
  throw Error::input(fmt::format("selector: expected gpt_oss or deepseek_v4, found '{}'", name));
}

std::set<std::string> parse_lib_list(const JsonFields& object) {
  const std::vector<std::string> names = object.strings("libs");
  return {names.begin(), names.end()};
}

// A list of names, or an object from names to versions.
void parse_lib_versions(const JsonFields& object, const json& value, DeploymentFacts& out) {
  if (value.is_array()) {
    out.libs = parse_lib_list(object);
    return;
  }
  if (!value.is_object()) object.wrong_type("libs", "a list or an object", value);
  std::set<std::string>& libs = out.libs.emplace();
  for (const auto& item : value.items()) {
    if (!item.value().is_string() && !item.value().is_null()) {
      object.wrong_type("libs", "versions that are strings or null", item.value());
    }
    libs.insert(item.key());
    if (item.value().is_string()) {
      out.lib_versions.emplace(item.key(), item.value().get_ref<const std::string&>());
    }
  }
}

std::map<std::string, std::string> parse_env(const JsonFields& object) {
  const JsonFields variables = object.object("env");
  std::map<std::string, std::string> env;
  for (const auto& item : variables.value().items()) {
    env.emplace(item.key(), variables.string(item.key()));
  }
  return env;
}

ParallelConfig parse_parallel(const JsonFields& object) {
  ParallelConfig config;
  for_each_fact_of<ParallelConfig>([&](const FactRow& row, auto members) {
    if (row.absent_if_zero && !object.has(row.batch)) return;
    object.read(row.batch, config.*members.known);
  });
  object.only();
  return config;
}

// Reads the facts of the table that are members of the line itself.
void read_facts(const JsonFields& object, Deployment& out) {
  for (const FactRow& row : deployment_facts()) {
    std::visit(
        [&]<class Members>(const Members& members) {
          if constexpr (requires { out.*members.known; })
            object.read(row.batch, out.*members.known);
        },
        row.members);
  }
}

// A JSON string literal, quotes included; null when absent.
std::string literal(std::optional<std::string_view> text) {
  constexpr bool kAscii = true;
  return text ? json(*text).dump(-1, ' ', kAscii, json::error_handler_t::replace) : "null";
}

}  // namespace

Deployment parse_deployment(std::string_view text) {
  const json value = parse_python_json(text);
  const JsonFields object(value);
  Deployment out;
  const std::string platform = object.string("platform");
  out.platform = parse_platform(platform);
  out.arch = object.string("arch");
  if (out.arch.empty() && (out.platform == Platform::kCuda || out.platform == Platform::kRocm)) {
    throw Error::input(fmt::format("arch: platform {} needs one", platform));
  }
  out.libs = parse_lib_list(object);
  out.env = parse_env(object);
  out.selector = parse_selector(object.string("selector"));
  read_facts(object, out);
  // The engine's configuration does so before a selector sees the name.
  out.moe_backend = normalize_moe_backend(out.moe_backend);
  out.activation_override = object.string_or_null("activation_override");
  out.model_activation = object.string_or_null("model_activation");
  out.is_act_and_mul = object.boolean("is_act_and_mul");
  if (object.has("num_experts")) out.num_experts = object.integer("num_experts");
  if (object.has("local_experts")) out.local_experts = object.integer("local_experts");
  if (object.has("hidden")) out.hidden_size = object.integer("hidden");
  if (object.has("intermediate")) out.intermediate_size = object.integer("intermediate");
  if (object.has("hash_routing")) out.hash_routing = object.boolean("hash_routing");
  if (object.has("model_type")) out.model_type = object.string("model_type");
  out.parallel = parse_parallel(object.object("parallel"));
  object.only();
  return out;
}

DeploymentFacts parse_target(std::string_view text) {
  const json value = parse_strict_json(text);
  const JsonFields object(value);
  DeploymentFacts out;
  if (object.has("vllm")) out.engine_version = object.string_or_null("vllm");
  if (object.has("sglang") && object.string_or_null("sglang")) {
    if (out.engine_version) {
      throw Error::input(
          "vllm and sglang: one of them serves; null for the other, or leave it out");
    }
    out.engine_version = fmt::format("sglang-{}", object.string("sglang"));
  }
  if (object.has("platform")) out.platform = parse_platform(object.string("platform"));
  if (object.has("arch")) out.arch = object.string("arch");
  if (object.has("libs")) parse_lib_versions(object, object.at("libs"), out);
  if (object.has("cuda_compiler")) {
    out.cuda_compiler = object.string("cuda_compiler");
    if (!compiler_version(*out.cuda_compiler)) {
      throw Error::input(fmt::format("cuda_compiler: expected a version such as 12.9, found {}",
                                     in_quotes(*out.cuda_compiler)));
    }
  }
  if (object.has("env")) out.env = parse_env(object);
  object.only();
  return out;
}

// Written by hand: a line has spaces behind its separators, as documented, and dump() puts none.
std::string decision_json(const Decision& decision, bool trace) {
  using Text = std::optional<std::string_view>;
  std::string out;
  if (decision.backend) {
    const Text experts_class =
        decision.experts_class.empty() ? Text() : Text(decision.experts_class);
    out = fmt::format(R"({{"backend": {}, "experts_class": {})",
                      literal(backend_name(*decision.backend)), literal(experts_class));
  } else {
    out = fmt::format(R"({{"error": {}, "message": {})", literal(decision.error_type),
                      literal(decision.error_message));
  }
  if (trace) {
    std::vector<std::string> steps;
    for (const TraceStep& step : decision.trace) {
      steps.push_back(fmt::format("[{}, {}, {}, {}]", literal(step.candidate), literal(step.key),
                                  step.supported,
                                  literal(step.supported ? Text() : Text(step.reason))));
    }
    out += fmt::format(R"(, "trace": [{}])", fmt::join(steps, ", "));
  }
  return out + "}";
}

}  // namespace mxfp4
