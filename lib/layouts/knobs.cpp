#include "lib/layouts/knobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/layouts/knob_variables.hpp"

namespace mxfp4 {
namespace {

void require_choice(std::string_view name, std::string_view value,
                    std::initializer_list<std::string_view> allowed) {
  if (std::ranges::find(allowed, value) != allowed.end()) return;
  throw Error::usage(fmt::format("{}: expected {}, found '{}'", name,
                                 alternatives({allowed.begin(), allowed.end()}), value));
}

std::string humming_choice(const Target& target, std::initializer_list<std::string_view> allowed) {
  constexpr std::string_view kKnob = "humming_input_dtype";
  const auto variable = target.env.find(std::string(kHummingVariable));
  if (!target.knobs.contains(std::string(kKnob)) && variable != target.env.end() &&
      !variable->second.empty()) {
    throw Error::usage(fmt::format("{} changes the packed bytes: say its dtype as knob {}",
                                   kHummingVariable, kKnob));
  }
  return knob_choice(target, kKnob, allowed);
}

}  // namespace

std::string knob_choice(const Target& target, std::string_view name,
                        std::initializer_list<std::string_view> allowed) {
  std::string value = target.knob(name, *allowed.begin());
  require_choice(fmt::format("knob {}", name), value, allowed);
  return value;
}

std::string params_dtype(const Target& target) {
  return knob_choice(target, "params_dtype", {"bfloat16", "float16"});
}

std::string marlin_input_dtype(const Target& target) {
  constexpr std::string_view kKnob = "marlin_input_dtype";
  const auto variable = target.env.find(std::string(kMarlinVariable));
  if (target.knobs.contains(std::string(kKnob)) || variable == target.env.end()) {
    return knob_choice(target, kKnob, {"none", "fp8", "int8"});
  }
  require_choice(kMarlinVariable, variable->second, {"fp8", "int8"});
  return variable->second;
}

std::string humming_input_dtype(const Target& target) {
  return humming_choice(target, {"none", "float8e4m3", "int8"});
}

std::string humming_input_type(const Target& target) {
  return humming_choice(target, {"none", "float8e4m3", "float8e4m3-group32", "float8e4m3-group64",
                                 "float8e4m3-group128", "int8", "float4e2m1"});
}

LayoutParameters layout_parameters(const Target& target) {
  return {.family = target.family,
          .params_dtype = params_dtype(target),
          .humming_input_dtype = target.knob("humming_input_dtype", "none")};
}

std::string aiter_weight(const Target& target) {
  return knob_choice(target, "aiter_weight", {"mxfp4", "int4"});
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
  static_cast<void>(params_dtype(target));
  static_cast<void>(marlin_input_dtype(target));
  static_cast<void>(humming_input_type(target));
  static_cast<void>(cuda_compiler(target));
  static_cast<void>(aiter_weight(target));
}

}  // namespace mxfp4
