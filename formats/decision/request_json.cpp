#include "formats/decision/request_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "formats/config/deployment_json.hpp"
#include "formats/config/quantization_override.hpp"
#include "formats/json/json_fields.hpp"
#include "formats/json/strict_json.hpp"
#include "lib/core/deployment_facts.hpp"
#include "lib/core/error.hpp"
#include "lib/core/suggest.hpp"
#include "lib/core/text.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/oracle/machines.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

using nlohmann::json;
using Pairs = std::map<std::string, std::string>;

constexpr int64_t kMaxLayerNumber = 99999;  // five digits in a file name

// Texts without a row among the deployment's facts.
constexpr std::array<std::pair<const char*, std::optional<std::string> DeploymentFacts::*>, 3>
    kTexts = {{{"activation_override", &DeploymentFacts::activation_override},
               {"weight_override", &DeploymentFacts::weight_override},
               {"cuda_compiler", &DeploymentFacts::cuda_compiler}}};

// The names of rows, for hints.
template <class Rows, class Name>
std::vector<std::string> names_of(const Rows& rows, Name name) {
  std::vector<std::string> names;
  names.reserve(std::size(rows));
  for (const auto& row : rows) names.emplace_back(std::invoke(name, row));
  return names;
}

// The member by its name; nullopt if absent.
template <class Lookup>
auto name_asked(const JsonFields& object, std::string_view key, Lookup lookup,
                const std::vector<std::string>& known) -> decltype(lookup(std::string_view{})) {
  if (!object.has(key)) return std::nullopt;
  const std::string text = object.string(key);
  if (const auto value = lookup(std::string_view(text))) return value;
  throw unknown_value(key, text, known);
}

// The items of "a, b".
std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string_view item = text.substr(begin, end - begin);
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    item = item.substr(0, item.find_last_not_of(' ') + 1);
    items.emplace_back(item);
    begin = end + 1;
  }
  return items;
}

// A list, or as a flag has it: a text with commas.
std::vector<std::string> list_asked(const JsonFields& object, std::string_view key) {
  if (!object.has(key)) return {};
  return object.at(key).is_string() ? split_list(object.string(key)) : object.strings(key);
}

// An object, or as a flag has it: a list of NAME=VALUE.
Pairs pairs_asked(const JsonFields& object, std::string_view key) {
  Pairs found;
  if (!object.has(key)) return found;
  if (!object.at(key).is_array()) {
    const JsonFields inner = object.object(key);
    for (const auto& item : inner.value().items()) found[item.key()] = inner.string(item.key());
    return found;
  }
  for (const std::string& item : object.strings(key)) {
    const size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error::usage(fmt::format("'{}' is not NAME=VALUE", item)).at_key(key);
    }
    const auto [pair, fresh] = found.emplace(item.substr(0, equals), item.substr(equals + 1));
    if (fresh || pair->second == item.substr(equals + 1)) continue;
    throw Error::usage(fmt::format("{} is given as '{}' and as '{}'", pair->first, pair->second,
                                   item.substr(equals + 1)))
        .at_key(key);
  }
  return found;
}

// "--tp-size" -> "tp_size"
std::string key_of(std::string_view flag) {
  std::string key(flag.substr(2));
  std::ranges::replace(key, '-', '_');
  return key;
}

// What a probe wrote, without the packages that the rules do not know.
DeploymentFacts known_facts(DeploymentFacts target, const RuleSet& rules) {
  if (target.libs) {
    std::erase_if(*target.libs, [&](const auto& lib) { return !is_package(rules, lib); });
  }
  if (target.arch && target.arch->empty()) target.arch.reset();
  return target;
}

// Takes a machine's name for its architecture.
void take_machine(DeploymentFacts& facts) {
  if (!facts.arch) return;
  if (const Machine* machine = find_machine(*facts.arch)) {
    facts.arch = taken_arch(*machine, !facts.needs_arch);
  } else if (!facts.platform || has_capability(*facts.platform)) {  // else no rule reads it
    throw Error::usage(fmt::format("unknown machine '{}'", *facts.arch))
        .at_key("arch")
        .hint(nearest_hint(*facts.arch, machine_words(), "list machines shows the names"));
  }
}

void libs_asked(const JsonFields& object, const RuleSet& rules, DeploymentFacts& facts) {
  const auto known = [&](std::string_view key, const std::string& name) {
    if (is_package(rules, name)) return name;
    throw Error::usage(fmt::format("unknown kernel package '{}'", name))
        .at_key(key)
        .hint(nearest_hint(name, {rules.packages.begin(), rules.packages.end()}));
  };
  if (object.has("libs")) {
    facts.libs.emplace();
    for (const std::string& item : list_asked(object, "libs")) {
      if (item == kNoLibs) continue;
      const size_t end = item.find("==");
      const std::string name = known("libs", item.substr(0, end));
      facts.libs->insert(name);
      if (end != std::string::npos) facts.lib_versions[name] = item.substr(end + 2);
    }
  }
  for (const std::string& name : list_asked(object, "no_lib")) {
    facts.absent_libs.insert(known("no_lib", name));
    if (!facts.libs || !facts.libs->contains(name)) continue;
    throw Error::usage(fmt::format("{} is in libs, too", name)).at_key("no_lib");
  }
}

void facts_asked(const JsonFields& object, DeploymentFacts& facts) {
  for_each_fact([&](const FactRow& row, auto members) {
    for (const std::string_view flag : {row.flag, row.other_flag}) {
      if (flag.empty()) continue;
      const std::string key = key_of(flag);
      if (object.has(key)) object.read(key, (facts.*members.given).emplace());
    }
  });
}

// "3072x2944"; none for the words of --pad.
std::optional<LayerDims> padded_sizes(const std::string& text) {
  if (text == "auto" || text == "none") return std::nullopt;
  const size_t cross = std::min(text.find('x'), text.size());
  const auto hidden = whole_number(std::string_view(text).substr(0, cross));
  const auto inter = whole_number(std::string_view(text).substr(std::min(cross + 1, text.size())));
  if (hidden && inter && *hidden > 0 && *inter > 0) return LayerDims{0, *hidden, *inter};
  throw Error::usage(fmt::format("'{}' is not auto, none or two sizes such as 3072x2944", text))
      .at_key("pad");
}

DeploymentFacts deployment_asked(const JsonFields& object, const RuleSet& rules) {
  DeploymentFacts facts;
  facts.platform =
      name_asked(object, "platform", platform_from_name, {"cuda", "rocm", "xpu", "cpu", "other"});
  if (object.has("arch")) facts.arch = object.string("arch");
  facts.needs_arch = !object.has("backend");
  libs_asked(object, rules, facts);
  facts_asked(object, facts);
  facts.env = pairs_asked(object, "env");
  facts.selector = name_asked(object, "selector", selector_from_name, {"gpt_oss", "deepseek_v4"});
  for (const auto& [key, fact] : kTexts) {
    if (object.has(key)) facts.*fact = object.string(key);
  }
  if (object.has("quantization_config")) {
    const json& value = object.at("quantization_config");
    QuantizationOverride config = value.is_string()
                                      ? read_quantization_config(value.get<std::string>())
                                      : parse_quantization_config(value.dump());
    facts.activation_override = std::move(config.activation);
    facts.weight_override = std::move(config.weight);
  }
  return facts;
}

// Takes the number of serving ranks out of the knobs; nullopt if it was not given.
std::optional<int64_t> take_world_size(Pairs& knobs) {
  const auto world = knobs.extract(kWorldKnob);
  if (world.empty()) return std::nullopt;
  const std::optional<int64_t> size = whole_number(world.mapped());
  if (size && *size > 0) return size;
  throw Error::usage(
      fmt::format("{}: '{}' is not a whole number above 0", kWorldKnob, world.mapped()))
      .at_key("knob");
}

void knobs_asked(const JsonFields& object, ConversionRequest& request) {
  request.knobs = pairs_asked(object, "knob");
  request.world_size = take_world_size(request.knobs);
  std::vector<std::string> names = names_of(kKnobs, &Knob::name);
  names.emplace_back(kWorldKnob);
  for (const auto& [name, value] : request.knobs) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw Error::usage(fmt::format("unknown knob '{}'", name))
        .at_key("knob")
        .hint(nearest_hint(name, names));
  }
  Target knobs;
  knobs.knobs = request.knobs;
  check_knobs(knobs);
}

// "0-3,7" -> {0, 1, 2, 3, 7}
std::set<int64_t> layers_in(std::string_view text) {
  std::set<int64_t> layers;
  for (const std::string_view item : split_list(text)) {
    const size_t dash = item.find('-');
    const auto first = whole_number(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : whole_number(item.substr(dash + 1));
    if (!first || !last || *first > *last || *last > kMaxLayerNumber) {
      throw Error::usage(fmt::format("'{}' is neither N nor FIRST-LAST", item))
          .at_key("layers")
          .hint("such as 0-3,7");
    }
    for (int64_t layer = *first; layer <= *last; ++layer) layers.insert(layer);
  }
  return layers;
}

CheckpointOptions checkpoint_asked(const JsonFields& object) {
  CheckpointOptions options;
  options.style = name_asked(object, "style", style_from_name, names_of(kAllStyles, &style_name));
  options.family = name_asked(object, "family", family_from_name, {"gpt_oss", "generic"});
  if (object.has("model_config")) {
    options.config_text = object.at("model_config").dump();
    options.config_path = "model_config";
  }
  if (object.has("layers") && object.at("layers").is_string()) {
    options.layers = layers_in(object.string("layers"));
  } else if (object.has("layers")) {
    for (const int64_t layer : object.integers("layers")) options.layers.insert(layer);
  }
  return options;
}

// What is left open is as the blob was made for, but not what allow_known_defects let pass: the
// defects of another release are others. Backends' names and variables are an engine's own, and
// backend and moe_backend replace each other.
void add_defaults(CheckpointRequest& out, const JsonFields& object, const Manifest& blob) {
  ConversionRequest& request = out.request;
  ConversionRequest asked = request_of(blob, *request.rules).request;
  DeploymentFacts& facts = request.deployment;
  if (blob.engine != request.rules->engine) {
    asked.backend.reset();
    asked.deployment.moe_backend.reset();
    asked.deployment.env.clear();
    asked.knobs.clear();
  }
  if (request.backend) asked.deployment.moe_backend.reset();
  if (!request.backend && !facts.moe_backend) request.backend = asked.backend;
  facts = merge_facts(std::move(facts), std::move(asked.deployment));
  facts.needs_arch = !request.backend;
  request.knobs.merge(asked.knobs);
  if (!request.family) request.family = out.checkpoint.family = asked.family;
  if (!request.world_size) request.world_size = asked.world_size;
  if (!object.has("expert_placement")) request.placement = asked.placement;
  if (!object.has("pad")) {
    request.pad = asked.pad;
    request.padded = asked.padded;
  }
}

}  // namespace

std::string release_named(const std::string& engine, const std::string& name) {
  const std::optional<Engine> wanted = engine_from_name(engine);
  if (name.empty()) return std::string(newest_release(wanted.value_or(Engine::kVllm)).name);
  if (!wanted) return name;
  const std::string number = name.front() == 'v' ? name.substr(1) : name;
  const bool bare = !number.empty() && is_digit(number.front());
  if (bare && *wanted == Engine::kSglang) return "sglang-" + number;
  if (bare || engine_of_revision(name) == *wanted) return name;
  throw Error::usage(fmt::format("{} contradicts the revision {}", engine, name))
      .at_key("engine")
      .hint(fmt::format("the newest of {} is {}", engine_title(*wanted),
                        newest_release(*wanted).name));
}

std::string release_asked(const json& value, const DeploymentFacts& target, const Manifest* blob) {
  const JsonFields object(value);
  const std::string engine = object.string_or("engine", "");
  const std::optional<Engine> wanted =
      name_asked(object, "engine", engine_from_name, {"vllm", "sglang"});
  const auto fits = [&](const std::string& name) {
    return !wanted || engine_of_revision(name) == *wanted;
  };
  if (object.has("revision")) return release_named(engine, object.string("revision"));
  if (target.engine_version) {
    if (fits(*target.engine_version)) return *target.engine_version;
  } else if (blob != nullptr && fits(blob->revision)) {
    return blob->revision;
  }
  return release_named(engine, "");
}

CheckpointRequest read_request(const json& value, const DeploymentFacts& target,
                               const RuleSet& rules, const Manifest* blob) {
  const JsonFields object(value);
  CheckpointRequest out;
  out.checkpoint = checkpoint_asked(object);
  ConversionRequest& request = out.request;
  request.rules = &rules;
  request.backend =
      name_asked(object, "backend", backend_from_name, names_of(all_backends(), &backend_name));
  request.deployment = deployment_asked(object, rules);
  take_machine(request.deployment);
  request.deployment = merge_facts(std::move(request.deployment), known_facts(target, rules));
  take_machine(request.deployment);
  request.family = out.checkpoint.family;
  knobs_asked(object, request);
  const std::string placement = object.string_or("expert_placement", "linear");
  if (placement == "round_robin") request.placement = ExpertPlacement::kRoundRobin;
  if (placement != "linear" && placement != "round_robin") {
    throw unknown_value("expert_placement", placement, {"linear", "round_robin"});
  }
  const std::string pad = object.string_or("pad", "auto");
  request.pad = pad != "none";
  request.padded = padded_sizes(pad);
  if (object.has("rank")) request.rank = object.integer("rank");
  const auto allowed = [&](std::string_view key) { return object.has(key) && object.boolean(key); };
  request.allow_known_defects = allowed("allow_known_defects");
  request.allow_unservable = allowed("allow_unservable");
  object.only({"engine", "revision", "target"});
  if (blob != nullptr) add_defaults(out, object, *blob);
  return out;
}

CheckpointRequest parse_checkpoint_request(std::string_view text) {
  try {
    const json value = parse_strict_json(text);
    const JsonFields object(value);
    const DeploymentFacts target =
        object.has("target") ? parse_target(object.at("target").dump()) : DeploymentFacts();
    const RuleSet& rules = revision_by_name(release_asked(value, target));
    CheckpointRequest asked = read_request(value, target, rules);
    if (!asked.request.rank) asked.request.rank = 0;
    return asked;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
    throw Error::usage(error.what());  // the text is the caller's own
  }
}

CheckpointRequest request_of(const Manifest& rank, const RuleSet& rules) {
  const auto object = json::parse(rank.asked);
  CheckpointRequest asked = in_context("asked", [&] {
    try {
      return read_request(object, {}, rules);
    } catch (const Error& error) {
      throw Error::input(error.what());
    }
  });
  ConversionRequest& request = asked.request;
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
