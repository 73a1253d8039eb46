#include "lib/revisions/library_pins.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

// The distribution whose version says what a package is.
std::string_view distribution_of(std::string_view package) {
  if (package.starts_with("flashinfer")) return "flashinfer";
  if (package == "aiter") return "AITER";
  if (package == "humming") return "humming-kernels";
  return package;
}

const LibraryPin* find_pin(std::span<const LibraryPin> pins, std::string_view package) {
  const auto found = std::ranges::find(pins, distribution_of(package), &LibraryPin::library);
  return found == pins.end() ? nullptr : &*found;
}

std::string_view plain_version(std::string_view version) {
  if (version.starts_with('v')) version.remove_prefix(1);
  version = version.substr(0, version.find('+'));
  return version.substr(0, version.find(".post"));
}

std::string_view platform_note(const LibraryPin& pin) {
  if (!pin.platform) return "";
  return *pin.platform == Platform::kRocm ? " (ROCm)" : " (CUDA)";
}

}  // namespace

std::string pins_text(std::span<const LibraryPin> pins) {
  std::string text;
  for (const LibraryPin& pin : pins) {
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", pin.library, pin.version,
                        platform_note(pin));
  }
  return text;
}

std::optional<OtherVersion> other_version(const RuleSet& rules, std::string_view package,
                                          std::string_view version,
                                          std::optional<Platform> platform) {
  const LibraryPin* pin = find_pin(rules.pins, package);
  if (pin == nullptr) return std::nullopt;
  if (pin->platform && platform && *pin->platform != *platform) return std::nullopt;
  const std::string_view told = plain_version(version);
  if (told == plain_version(pin->version)) return std::nullopt;
  OtherVersion other{pin, nullptr};
  for (const Release* release : all_releases()) {
    const LibraryPin* its = find_pin(release->pins, package);
    if (its != nullptr && told == plain_version(its->version)) other.made_for = release;
  }
  return other;
}

}  // namespace mxfp4
