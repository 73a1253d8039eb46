#include "lib/layouts/knobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
std::string knob_value(const Target& target, std::string_view name) {
  const Knob& knob = *std::ranges::find(kKnobs, name, &Knob::name);
  const std::string usual(knob.values.substr(0, knob.values.find('|')));
  std::string value = target.knob(name, usual);
  const auto variable = target.env.find(std::string(knob.variable));
  if (!target.knobs.contains(std::string(name)) && variable != target.env.end()) {
    if (name != "humming_input_dtype") value = variable->second;
    if (name == "humming_input_dtype" && !variable->second.empty()) {
      throw Error::usage(fmt::format("{} changes the packed bytes: say its dtype as knob {}",
                                     knob.variable, name));
    }
  }
  const auto all = fmt::format("|{}|", knob.values);
  if (all.find(fmt::format("|{}|", value)) != std::string::npos) return value;
  throw Error::usage(fmt::format("knob {}: expected {}, found '{}'", name, knob.values, value));
}

LayoutParameters layout_parameters(const Target& target) {
  return {.family = target.family,
          .params_dtype = knob_value(target, "params_dtype"),
          .humming_input_dtype = target.knob("humming_input_dtype", "none")};
}

LayoutParameters parameters_from(const std::map<std::string, std::string>& read) {
  LayoutParameters parameters;
  for (const auto& [name, value] : read) {
    const std::optional<Family> family = family_from_name(value);
    if (name == "family" && family) {
      parameters.family = *family;
    } else if (name == "params_dtype") {
      parameters.params_dtype = value;
    } else if (name == "humming_input_dtype") {
      parameters.humming_input_dtype = value;
    } else {
      throw Error::input(
          fmt::format("{}: {}: no layout reads it", in_quotes(name), in_quotes(value)));
    }
  }
  return parameters;
}

std::optional<CompilerVersion> compiler_version(std::string_view text) {
  CompilerVersion version;
  const char* const end = text.data() + text.size();
  const auto [dot, bad_major] = std::from_chars(text.data(), end, version.major);
  if (bad_major != std::errc{} || dot == end || *dot != '.') return std::nullopt;
  const auto [behind, bad_minor] = std::from_chars(dot + 1, end, version.minor);
  if (bad_minor != std::errc{} || behind != end) return std::nullopt;
  return version;
}

std::optional<CompilerVersion> cuda_compiler(const Target& target) {
  const std::string text = target.knob("cuda_compiler", "");
  if (text.empty()) return std::nullopt;
  const std::optional<CompilerVersion> version = compiler_version(text);
  if (version) return version;
  throw Error::usage(
      fmt::format("knob cuda_compiler: expected a version such as 12.9, found '{}'", text));
}

void check_knobs(const Target& target) {
  static_cast<void>(cuda_compiler(target));
  for (const Knob& knob : kKnobs) {
    if (knob.name != "cuda_compiler") static_cast<void>(knob_value(target, knob.name));
  }
}

}  // namespace mxfp4
