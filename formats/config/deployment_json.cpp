#include "formats/config/deployment_json.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/json/json_fields.hpp"
#include "formats/json/python_json.hpp"
#include "formats/json/strict_json.hpp"
#include "lib/core/error.hpp"

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

std::set<std::string> parse_lib_list(const JsonFields& object, const json& list) {
  if (!list.is_array()) object.wrong_type("libs", "a list of strings", list);
  std::set<std::string> libs;
  for (const json& item : list) {
    if (!item.is_string()) object.wrong_type("libs", "a list of strings", item);
    libs.insert(item.get_ref<const std::string&>());
  }
  return libs;
}

// A list of names, or an object from names to versions.
std::set<std::string> parse_lib_versions(const JsonFields& object, const json& value) {
  if (value.is_array()) return parse_lib_list(object, value);
  if (!value.is_object()) object.wrong_type("libs", "a list or an object", value);
  std::set<std::string> libs;
  for (const auto& item : value.items()) {
    if (!item.value().is_string() && !item.value().is_null()) {
      object.wrong_type("libs", "versions that are strings or null", item.value());
    }
    libs.insert(item.key());
  }
  return libs;
}

std::map<std::string, std::string> parse_env(const JsonFields& object, const json& value) {
  if (!value.is_object()) object.wrong_type("env", "an object of strings", value);
  std::map<std::string, std::string> env;
  for (const auto& item : value.items()) {
    if (!item.value().is_string()) object.wrong_type("env", "an object of strings", item.value());
    env.emplace(item.key(), item.value().get_ref<const std::string&>());
  }
  return env;
}

ParallelConfig parse_parallel(const JsonFields& object) {
  ParallelConfig config;
  config.tp_size = object.integer("tp");
  config.pcp_size = object.integer("pcp");
  config.dp_size = object.integer("dp");
  config.enable_expert_parallel = object.boolean("enable_expert_parallel");
  config.all2all_backend = object.string("all2all_backend");
  config.enable_eplb = object.boolean("enable_eplb");
  config.sequence_parallel = object.boolean("sequence_parallel");
  object.only({"tp", "pcp", "dp", "enable_expert_parallel", "all2all_backend", "enable_eplb",
               "sequence_parallel"});
  return config;
}

// The code point that starts at text[i], which moves past it; U+FFFD for an invalid byte.
uint32_t next_code_point(std::string_view text, size_t& i) {
  const size_t length = utf8_sequence(text.substr(i, 4));
  const std::string_view bytes = text.substr(i, std::max<size_t>(length, 1));
  i += bytes.size();
  if (length == 0) return 0xFFFD;
  // The lead byte has as many bits fewer as the sequence has bytes.
  uint32_t code = static_cast<unsigned char>(bytes.front());
  if (length > 1) code &= 0x7FU >> length;
  for (const char c : bytes.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3FU);
  return code;
}

void append_unicode_escape(std::string& out, uint32_t code) {
  const auto format_to = std::back_inserter(out);
  if (code < 0x10000) {
    fmt::format_to(format_to, "\\u{:04x}", code);
  } else {
    code -= 0x10000;
    fmt::format_to(format_to, "\\u{:04x}\\u{:04x}", 0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF));
  }
}

void append_optional(std::string& out, bool present, std::string_view text) {
  if (present) {
    append_json_string(out, text);
  } else {
    out += "null";
  }
}

}  // namespace

Deployment parse_deployment(std::string_view text) {
  const json value = parse_json(text);
  const JsonFields object(value);
  Deployment out;
  const std::string platform = object.string("platform");
  out.platform = parse_platform(platform);
  out.arch = object.string("arch");
  if (out.arch.empty() && (out.platform == Platform::kCuda || out.platform == Platform::kRocm)) {
    throw Error::input(fmt::format("arch: platform {} needs one", platform));
  }
  out.libs = parse_lib_list(object, object.at("libs"));
  out.env = parse_env(object, object.at("env"));
  out.selector = parse_selector(object.string("selector"));
  out.moe_backend = object.string("moe_backend");
  out.activation_override = object.string_or_null("activation_override");
  out.model_activation = object.string_or_null("model_activation");
  out.activation = object.string("activation");
  out.is_act_and_mul = object.boolean("is_act_and_mul");
  out.routing_method = object.string("routing_method");
  out.lora = object.boolean("lora");
  if (object.has("num_experts")) out.num_experts = object.integer("num_experts");
  out.parallel = parse_parallel(object.object("parallel"));
  object.only({"platform", "arch", "libs", "env", "selector", "moe_backend", "activation_override",
               "model_activation", "activation", "is_act_and_mul", "routing_method", "lora",
               "num_experts", "parallel"});
  return out;
}

DeploymentRequest parse_target(std::string_view text) {
  const json value = parse_strict_json(text);
  const JsonFields object(value);
  DeploymentRequest out;
  if (object.has("platform")) out.platform = parse_platform(object.string("platform"));
  if (object.has("arch")) out.arch = object.string("arch");
  if (object.has("libs")) out.libs = parse_lib_versions(object, object.at("libs"));
  if (object.has("env")) out.env = parse_env(object, object.at("env"));
  object.only({"platform", "arch", "libs", "env"});
  return out;
}

// The library's dump makes a value and a stream for each string: `explain --batch -v` would take an
// eighth longer.
void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
      ++i;
    } else if (c >= 0x20 && c < 0x7F) {
      out += c;
      ++i;
    } else {
      append_unicode_escape(out, next_code_point(text, i));
    }
  }
  out += '"';
}

std::string decision_json(const Decision& decision, bool trace) {
  std::string out;
  out.reserve(trace ? 2048 : 512);
  if (decision.backend) {
    out += "{\"backend\": ";
    append_json_string(out, backend_name(*decision.backend));
    out += ", \"experts_class\": ";
    append_optional(out, !decision.experts_class.empty(), decision.experts_class);
  } else {
    out += "{\"error\": ";
    append_json_string(out, decision.error_type);
    out += ", \"message\": ";
    append_json_string(out, decision.error_message);
  }
  if (trace) {
    out += ", \"trace\": [";
    for (const TraceStep& step : decision.trace) {
      out += &step == &decision.trace.front() ? "[" : ", [";
      append_json_string(out, step.candidate);
      out += ", ";
      append_optional(out, step.key.has_value(), step.key.value_or(""));
      out += step.supported ? ", true, " : ", false, ";
      append_optional(out, !step.supported, step.reason);
      out += "]";
    }
    out += "]";
  }
  return out + "}";
}

}  // namespace mxfp4
