#include "lib/revisions/tested_libraries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/output.hpp"
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

const Release* newest_with(Engine engine, std::string_view package, std::string_view plain) {
  const Release* newest = nullptr;
  for (const Release* release : releases_of(engine)) {
    const LibraryPin* pin = pin_of(release->pins, package);
    if (pin != nullptr && plain == plain_version(pin->version)) newest = release;
  }
  return newest;
}

// The versions in "humming-kernels 0.1.16, 0.1.17 and 0.1.19"; none if the text names
// another library.
std::vector<std::string_view> versions_named(std::string_view text, std::string_view library) {
  if (!text.starts_with(library) || text.substr(library.size(), 1) != " ") return {};
  std::vector<std::string_view> versions;
  for (size_t at = library.size(); at < text.size();) {
    const size_t begin = text.find_first_not_of(" ,", at);
    if (begin == std::string_view::npos) break;
    at = std::min(text.find_first_of(" ,", begin), text.size());
    const std::string_view word = text.substr(begin, at - begin);
    if (word != "and") versions.push_back(word);
  }
  return versions;
}

}  // namespace

const LibraryPin* pin_of(std::span<const LibraryPin> pins, std::string_view package) {
  const auto found = std::ranges::find(pins, distribution_of(package), &LibraryPin::library);
  return found == pins.end() ? nullptr : &*found;
}

std::string pins_text(std::span<const LibraryPin> pins) {
  std::string text;
  for (const LibraryPin& pin : pins) {
    const bool rocm = pin.platform == Platform::kRocm;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", pin.library, pin.version,
                        !pin.platform ? ""
                        : rocm        ? " (ROCm)"
                                      : " (CUDA)");
  }
  return text;
}

std::span<const TestedLibrary> tested_libraries() {
  static const std::vector<TestedLibrary> kTable = table();
  return kTable;
}

std::optional<UntestedVersion> untested_version(const RuleSet& rules, const Layout* layout,
                                                std::string_view package, std::string_view version,
                                                std::optional<Platform> platform) {
  if (layout == nullptr) return std::nullopt;
  const std::string_view library = distribution_of(package);
  std::vector<std::string_view> tested = versions_named(kernel_library_of(*layout), library);
  if (const TestedLibrary* row = find_row(layout, library)) tested = row->versions;
  if (tested.empty()) return std::nullopt;
  const std::string_view given = plain_version(version);
  if (holds(tested, given)) return std::nullopt;
  const LibraryPin* pin = pin_of(rules.pins, package);
  const bool counts =
      pin != nullptr && (!pin->platform || !platform || *pin->platform == *platform);
  if (counts && given == plain_version(pin->version)) return std::nullopt;
  return UntestedVersion{library, std::move(tested), counts ? pin->version : "",
                         newest_with(rules.engine, package, given)};
}

}  // namespace mxfp4
