#include "lib/revisions/tested_libraries.hpp"

#include <algorithm>

#include "lib/layouts/all.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kFlashinfer = "flashinfer";

std::vector<TestedLibrary> table() {
  const std::vector<std::string_view> every = {
      "0.6.8.post1",  "0.6.11.post2", "0.6.12",       "0.6.13",      "0.6.14",
      "0.6.16.post3", "0.6.18",       "0.6.18.post1", "0.7.0.post1", "0.7.2.post1"};
  const std::vector<std::string_view> interleaved = {"0.6.11.post2", "0.6.12", "0.6.13", "0.6.14",
                                                     "0.6.16.post3"};
  const std::vector<std::string_view> folded = {"0.6.18", "0.6.18.post1", "0.7.0.post1",
                                                "0.7.2.post1"};
  return {
      {&kFlashinferTrtllmLayout, kFlashinfer, every},
      {&kFlashinferCutlassMxfp8Layout, kFlashinfer, every},
      {&kFlashinferCutlassMxfp8HalvesLayout,
       kFlashinfer,
       {"0.6.16.post3", "0.6.18", "0.6.18.post1", "0.7.0.post1", "0.7.2.post1"}},
      {&kFlashinferCutlassSm90Layout, kFlashinfer, interleaved},
      {&kFlashinferCutlassSm90HalvesLayout, kFlashinfer, {"0.6.16.post3"}},
      {&kFlashinferCutlassSm90FoldedLayout, kFlashinfer, folded},
      {&kFlashinferCutlassSm90FoldedHalvesLayout, kFlashinfer, folded},
  };
}

// The distribution whose version counts for a package.
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

const TestedLibrary* find_row(const Layout* layout, std::string_view library) {
  for (const TestedLibrary& row : tested_libraries()) {
    if (row.layout == layout && row.library == library) return &row;
  }
  return nullptr;
}

bool holds(std::span<const std::string_view> versions, std::string_view plain) {
  return std::ranges::find(versions, plain, plain_version) != versions.end();
}

bool tested_with_any_layout(std::string_view library, std::string_view plain) {
  return std::ranges::any_of(tested_libraries(), [&](const TestedLibrary& row) {
    return row.library == library && holds(row.versions, plain);
  });
}

const Release* newest_with(std::string_view package, std::string_view plain) {
  const Release* newest = nullptr;
  for (const Release* release : all_releases()) {
    const LibraryPin* pin = find_pin(release->pins, package);
    if (pin != nullptr && plain == plain_version(pin->version)) newest = release;
  }
  return newest;
}

// "flashinfer 0.6.18" of the library itself.
bool names_library(std::string_view kernel_library, std::string_view library) {
  return kernel_library.starts_with(library) && kernel_library.substr(library.size(), 1) == " ";
}

}  // namespace

std::span<const TestedLibrary> tested_libraries() {
  static const std::vector<TestedLibrary> kTable = table();
  return kTable;
}

std::optional<UntestedVersion> untested_version(const RuleSet& rules, const Layout* layout,
                                                std::string_view package, std::string_view version,
                                                std::optional<Platform> platform) {
  const LibraryPin* pin = find_pin(rules.pins, package);
  if (pin == nullptr) return std::nullopt;
  if (pin->platform && platform && *pin->platform != *platform) return std::nullopt;
  const std::string_view told = plain_version(version);
  if (told == plain_version(pin->version)) return std::nullopt;
  const TestedLibrary* row = find_row(layout, pin->library);
  if (row != nullptr && holds(row->versions, told)) return std::nullopt;
  UntestedVersion untested{pin, {pin->version}, newest_with(package, told)};
  if (row != nullptr) untested.tested = row->versions;
  const bool depends =
      row != nullptr || (layout != nullptr && names_library(layout->kernel_library, pin->library));
  const bool known = untested.made_for != nullptr || tested_with_any_layout(pin->library, told);
  if (!depends && known) return std::nullopt;
  return untested;
}

}  // namespace mxfp4
