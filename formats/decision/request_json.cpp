#include "formats/decision/request_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "formats/config/deployment_json.hpp"
#include "formats/config/quantization_override.hpp"
#include "formats/json/json_fields.hpp"
#include "formats/json/strict_json.hpp"
#include "lib/core/deployment_facts.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/oracle/machines.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

using nlohmann::json;
using Keys = std::vector<std::string_view>;

// Texts without a row among the deployment's facts.
constexpr std::array<std::pair<const char*, std::optional<std::string> DeploymentFacts::*>, 3>
    kTexts = {{{"activation_override", &DeploymentFacts::activation_override},
               {"weight_override", &DeploymentFacts::weight_override},
               {"cuda_compiler", &DeploymentFacts::cuda_compiler}}};

// The member by its name; nullopt if absent.
template <class Lookup>
auto name_asked(const JsonFields& object, std::string_view key, Lookup lookup)
    -> decltype(lookup(std::string_view{})) {
  if (!object.has(key)) return std::nullopt;
  const std::string text = object.string(key);
  if (const auto value = lookup(std::string_view(text))) return value;
  throw Error::usage(fmt::format("{}: unknown name {}", key, in_quotes(text)));
}

std::map<std::string, std::string> pairs(const JsonFields& object, std::string_view key) {
  std::map<std::string, std::string> found;
  if (!object.has(key)) return found;
  const JsonFields inner = object.object(key);
  for (const auto& item : inner.value().items()) found[item.key()] = inner.string(item.key());
  return found;
}

// "--tp-size" -> "tp_size"
std::string key_of(std::string_view flag) {
  std::string key(flag.substr(2));
  std::ranges::replace(key, '-', '_');
  return key;
}

void machine_asked(const JsonFields& object, bool forced, DeploymentFacts& facts) {
  facts.platform = name_asked(object, "platform", platform_from_name);
  facts.needs_arch = !forced;
  if (!object.has("arch")) return;
  const std::string name = object.string("arch");
  const Machine* machine = find_machine(name);
  if (machine != nullptr) {
    facts.arch = taken_arch(*machine, forced);
  } else if (facts.platform && !has_capability(*facts.platform)) {
    facts.arch = name;  // no rule reads it
  } else {
    throw Error::usage(fmt::format("arch: unknown machine {}", in_quotes(name)));
  }
}

void libs_asked(const JsonFields& object, const RuleSet& rules, DeploymentFacts& facts) {
  const auto known = [&](std::string_view key, const std::string& name) {
    if (!is_package(rules, name)) {
      throw Error::usage(fmt::format("{}: unknown kernel package {}", key, in_quotes(name)));
    }
    return name;
  };
  if (object.has("libs")) {
    facts.libs.emplace();
    for (const std::string& item : object.strings("libs")) {
      const size_t end = item.find("==");
      const std::string name = known("libs", item.substr(0, end));
      facts.libs->insert(name);
      if (end != std::string::npos) facts.lib_versions[name] = item.substr(end + 2);
    }
  }
  if (!object.has("no_lib")) return;
  for (const std::string& name : object.strings("no_lib")) {
    facts.absent_libs.insert(known("no_lib", name));
  }
}

void facts_asked(const JsonFields& object, DeploymentFacts& facts, std::vector<std::string>& keys) {
  for_each_fact([&](const FactRow& row, auto members) {
    for (const std::string_view flag : {row.flag, row.other_flag}) {
      if (flag.empty()) continue;
      keys.push_back(key_of(flag));
      if (object.has(keys.back())) object.read(keys.back(), (facts.*members.given).emplace());
    }
  });
}

// The rules of the release that serves: as asked, else the target's, else the newest.
const RuleSet& rules_of_request(const JsonFields& object, const DeploymentFacts& target) {
  const std::optional<Engine> engine = name_asked(object, "engine", engine_from_name);
  const std::string name = object.string_or("revision", target.engine_version.value_or(""));
  if (name.empty()) return default_revision(engine.value_or(Engine::kVllm));
  const bool prefixed = engine != Engine::kSglang || engine_of_revision(name) == *engine;
  return revision_by_name(prefixed ? name : fmt::format("sglang-{}", name));
}

// "3072x2944"; none for the words of --pad.
std::optional<LayerDims> padded_sizes(const std::string& text) {
  if (text == "auto" || text == "none") return std::nullopt;
  LayerDims dims;
  int used = 0;
  if (std::sscanf(text.c_str(), "%7ldx%7ld%n", &dims.hidden_size, &dims.intermediate_size, &used) ==
          2 &&
      used == static_cast<int>(text.size()) && dims.hidden_size > 0 && dims.intermediate_size > 0) {
    return dims;
  }
  throw Error::usage(fmt::format("pad: {} is not auto, none or two sizes", in_quotes(text)));
}

DeploymentFacts deployment_asked(const JsonFields& object, const RuleSet& rules, bool forced,
                                 std::vector<std::string>& keys) {
  DeploymentFacts facts;
  machine_asked(object, forced, facts);
  libs_asked(object, rules, facts);
  facts_asked(object, facts, keys);
  facts.env = pairs(object, "env");
  facts.selector = name_asked(object, "selector", selector_from_name);
  for (const auto& [key, fact] : kTexts) {
    if (object.has(key)) facts.*fact = object.string(key);
  }
  if (object.has("quantization_config")) {
    const auto config = parse_quantization_config(rules, object.at("quantization_config").dump());
    if (config) {
      facts.activation_override = config->moe_activation();
      facts.weight_override = config->moe_weight();
    }
  }
  return facts;
}

CheckpointOptions checkpoint_asked(const JsonFields& object) {
  CheckpointOptions options;
  options.style = name_asked(object, "style", style_from_name);
  options.family = name_asked(object, "family", family_from_name);
  if (object.has("model_config")) {
    options.config_text = object.at("model_config").dump();
    options.config_path = "model_config";
  }
  if (object.has("layers")) {
    for (const int64_t layer : object.integers("layers")) options.layers.insert(layer);
  }
  return options;
}

CheckpointRequest read_request(const JsonFields& object) {
  CheckpointRequest out;
  out.checkpoint = checkpoint_asked(object);
  ConversionRequest& request = out.request;
  const DeploymentFacts target =
      object.has("target") ? parse_target(object.at("target").dump()) : DeploymentFacts();
  request.rules = &rules_of_request(object, target);
  request.backend = name_asked(object, "backend", backend_from_name);
  std::vector<std::string> keys;
  request.deployment = merge_facts(
      deployment_asked(object, *request.rules, request.backend.has_value(), keys), target);
  request.family = out.checkpoint.family;
  request.knobs = pairs(object, "knob");
  Target knobs;
  knobs.knobs = request.knobs;
  check_knobs(knobs);
  if (object.string_or("expert_placement", "linear") == "round_robin") {
    request.placement = ExpertPlacement::kRoundRobin;
  }
  const std::string pad = object.string_or("pad", "auto");
  request.pad = pad != "none";
  request.padded = padded_sizes(pad);
  request.rank = object.integer_or("rank", 0);
  request.allow_known_defects =
      object.has("allow_known_defects") && object.boolean("allow_known_defects");
  request.allow_unservable = object.has("allow_unservable") && object.boolean("allow_unservable");
  Keys known(keys.begin(), keys.end());
  known.insert(known.end(), {"engine",
                             "revision",
                             "platform",
                             "arch",
                             "backend",
                             "family",
                             "selector",
                             "libs",
                             "no_lib",
                             "env",
                             "knob",
                             "quantization_config",
                             "target",
                             "expert_placement",
                             "pad",
                             "rank",
                             "allow_known_defects",
                             "allow_unservable",
                             "style",
                             "model_config",
                             "layers"});
  for (const auto& text : kTexts) known.emplace_back(text.first);
  object.only(known);
  return out;
}

}  // namespace

CheckpointRequest parse_checkpoint_request(std::string_view text) {
  try {
    const json value = parse_strict_json(text);
    return read_request(JsonFields(value));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
    throw Error::usage(error.what());  // the text is the caller's own
  }
}

CheckpointRequest request_of(const Manifest& rank, const RuleSet& rules) {
  auto object = nlohmann::json::parse(rank.asked);
  object["revision"] = rules.name;
  CheckpointRequest asked = in_context("asked", [&] {
    try {
      return parse_checkpoint_request(object.dump());
    } catch (const Error& error) {
      throw Error::input(error.what());
    }
  });
  ConversionRequest& request = asked.request;
  request.rank.reset();
  request.stop_at_loaded = rank.layout == kLoadedLayoutId;
  // A loaded input is one rank's already.
  if (rank.style == style_name(Style::kLoaded)) request.world_size = rank.target.world_size;
  return asked;
}

std::string request_text(const ConversionRequest& request, std::optional<Style> style) {
  const DeploymentFacts& facts = request.deployment;
  json out = json::object();
  const auto set = [&](const char* key, const std::string& value) {
    if (!value.empty()) out[key] = value;
  };
  for_each_fact([&](const FactRow& row, auto members) {
    if (const auto& given = facts.*members.given) out[key_of(row.flag)] = *given;
  });
  for (const auto& [key, fact] : kTexts) set(key, (facts.*fact).value_or(""));
  if (facts.platform) out["platform"] = platform_name(*facts.platform);
  set("arch", facts.arch.value_or(""));
  if (facts.selector) out["selector"] = selector_name(*facts.selector);
  if (facts.libs) {
    json& libs = out["libs"] = json::array();
    for (const std::string& name : *facts.libs) {
      const auto version = facts.lib_versions.find(name);
      libs.push_back(version == facts.lib_versions.end() ? name : name + "==" + version->second);
    }
  }
  if (!facts.absent_libs.empty()) out["no_lib"] = facts.absent_libs;
  if (!facts.env.empty()) out["env"] = facts.env;
  if (!request.knobs.empty()) out["knob"] = request.knobs;
  if (request.backend) out["backend"] = backend_name(*request.backend);
  if (request.family) out["family"] = family_name(*request.family);
  if (style) out["style"] = style_name(*style);
  if (request.placement == ExpertPlacement::kRoundRobin) out["expert_placement"] = "round_robin";
  if (request.padded) {
    out["pad"] =
        fmt::format("{}x{}", request.padded->hidden_size, request.padded->intermediate_size);
  } else if (!request.pad) {
    out["pad"] = "none";
  }
  if (request.allow_known_defects) out["allow_known_defects"] = true;
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace mxfp4
